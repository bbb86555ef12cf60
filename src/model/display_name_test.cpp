#include "model/display_name.h"

#include <random>

#include <gtest/gtest.h>

namespace assay::model {
namespace {

TEST(FoldName, FoldsTemplateArguments) {
  EXPECT_EQ(fold_name("std::vector<int, std::allocator<int> >::push_back(int&&)"),
            "std::vector<…>::push_back(int&&)");
  EXPECT_EQ(fold_name("void f<int>(std::map<int, std::pair<int, int> > const&)"),
            "void f<…>(std::map<…> const&)");
  EXPECT_EQ(fold_name("plain"), "plain");
  EXPECT_EQ(fold_name(""), "");
  EXPECT_EQ(fold_name("a<b<(c>d)>::e"), "a<b<(c>d)>::e") << "never closed: left as it is";
  EXPECT_EQ(fold_name("A<(1>0)>::f()"), "A<…>::f()");
}

TEST(FoldName, KeepsOperators) {
  EXPECT_EQ(fold_name("bool operator< <char>(S<char> const&, int)"),
            "bool operator< <…>(S<…> const&, int)");
  EXPECT_EQ(fold_name("std::unique_ptr<T>::operator->() const"),
            "std::unique_ptr<…>::operator->() const");
  EXPECT_EQ(fold_name("std::ostream& std::operator<< <char>(int)"),
            "std::ostream& std::operator<< <…>(int)");
  EXPECT_EQ(fold_name("A::operator<=>(A const&) const"), "A::operator<=>(A const&) const");
  EXPECT_EQ(fold_name("A<int>::operator()(int) const"), "A<…>::operator()(int) const");
  EXPECT_EQ(fold_name("my_operator<int>(x)"), "my_operator<…>(x)");
}

TEST(FoldName, KeepsNamespacesAndLambdas) {
  EXPECT_EQ(fold_name("(anonymous namespace)::f<int>()"), "(anonymous namespace)::f<…>()");
  EXPECT_EQ(fold_name("main::{lambda(std::vector<int>, int)#2}::operator()(int) const"),
            "main::{lambda#2}::operator()(int) const");
  EXPECT_EQ(fold_name("main(int, char**)::<lambda(int)>::operator()"),
            "main(int, char**)::{lambda}::operator()");
}

TEST(FoldName, RustPathsKeepTheirTrait) {
  EXPECT_EQ(fold_name("<alloc::vec::Vec<T> as core::ops::Drop>::drop"),
            "<alloc::vec::Vec<…> as core::ops::Drop>::drop");
  EXPECT_EQ(fold_name("core::iter::map::<i32, u8>::next"), "core::iter::map::<…>::next");
}

TEST(ShortName, LeavesTheNameAlone) {
  EXPECT_EQ(short_name("std::vector<int>::push_back(int&&)"), "std::vector<…>::push_back");
  EXPECT_EQ(short_name("void std::sort<int*, less<int> >(int*, int*, less<int>)"), "std::sort<…>");
  EXPECT_EQ(short_name("A::get() const"), "A::get");
  EXPECT_EQ(short_name("A::operator()(int) const"), "A::operator()");
  EXPECT_EQ(short_name("A::operator bool() const"), "A::operator bool");
  EXPECT_EQ(short_name("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(short_name("f(int) [clone .part.0]"), "f");
  EXPECT_EQ(short_name("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  EXPECT_EQ(short_name("main::{lambda(int)#1}::operator()(int) const"),
            "main::{lambda#1}::operator()");
  EXPECT_EQ(short_name("tcp_sendmsg"), "tcp_sendmsg");
  EXPECT_EQ(short_name("D main"), "D main");
}

TEST(FoldName, AnyTextIsSafe) {
  std::mt19937 random(11);
  const std::string alphabet = "<>(){}[]:-= ,#aoperator lambda&*1";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += alphabet[random() % alphabet.size()];
    (void)fold_name(text);
    (void)short_name(text);
  }
  (void)fold_name(std::string(100000, '<'));
}

}  // namespace
}  // namespace assay::model
