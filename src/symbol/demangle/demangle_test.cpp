#include "symbol/demangle/demangle.h"

#include <random>

#include <gtest/gtest.h>

namespace assay::symbol {
namespace {

TEST(Demangle, PassesPlainNames) {
  for (const char* name :
       {"", "main", "_start", "main.(*Server).Serve", "runtime.mallocgc", "_", "_Z", "_R", "_D"}) {
    EXPECT_EQ(demangle(name), name);
  }
}

TEST(Demangle, Cpp) {
  EXPECT_EQ(demangle("_Z3fooi"), "foo(int)");
  EXPECT_EQ(demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back(int&&)");
  EXPECT_EQ(demangle("_ZN12_GLOBAL__N_14anonEi"), "(anonymous namespace)::anon(int)");
  EXPECT_EQ(demangle("_Z3foov.part.0"), "foo() [clone .part.0]");
  EXPECT_EQ(demangle("_Znot a name"), "_Znot a name");
}

TEST(Demangle, RustLegacyLosesItsHash) {
  EXPECT_EQ(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad");
  EXPECT_EQ(demangle("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
                     "3bar17h930b740aa94f1d3aE"),
            "<Test + 'static as foo::Bar<Test>>::bar");
  EXPECT_EQ(demangle("_ZN3foo3bar17h0123456789abcdefE.llvm.123"), "foo::bar");
  // Without a hash it is C++.
  EXPECT_EQ(demangle("_ZN3foo3barEv"), "foo::bar()");
}

// The expected texts are those of rustc's own documentation and of c++filt.
TEST(Demangle, RustV0) {
  EXPECT_EQ(demangle("_RNvC7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(demangle("_RNvNtC3std3mem8align_of"), "std::mem::align_of");
  EXPECT_EQ(demangle("_RNCNvC7mycrate4main0"), "mycrate::main::{closure#0}");
  EXPECT_EQ(demangle("_RNCNvC7mycrate4mains_0"), "mycrate::main::{closure#1}");
  EXPECT_EQ(demangle("_RINvC3foo3barlE"), "foo::bar::<i32>");
  EXPECT_EQ(demangle("_RNvMs_NtC3foo3barNtB4_3Baz3new"), "<foo::bar::Baz>::new");
  EXPECT_EQ(demangle("_RNvXCsgStHSCytQ6I_7mycrateNtB2_3FooNtB2_3Bar3baz"),
            "<mycrate::Foo as mycrate::Bar>::baz");
  EXPECT_EQ(demangle("_RINvC3foo3barKj7b_E"), "foo::bar::<123>");
  EXPECT_EQ(demangle("_RINvC3foo3barRShE"), "foo::bar::<&[u8]>");
  EXPECT_EQ(demangle("_RINvC3foo3barTlhEE"), "foo::bar::<(i32, u8)>");
  EXPECT_EQ(demangle("_RINvC3foo3barFG_RL0_hEuE"), "foo::bar::<for<'a> fn(&'a u8)>");
  EXPECT_EQ(demangle("_RINvC3foo3barDNtC3std3FooEL_E"), "foo::bar::<dyn std::Foo>");
  EXPECT_EQ(demangle("_RNvC7mycrateu8gdel_5qa"), "mycrate::gödel");
  EXPECT_EQ(demangle("_RNvC7mycrate3fooC3bar"), "mycrate::foo");
  EXPECT_EQ(demangle("_RNvC7mycrate3foo.llvm.99"), "mycrate::foo");
}

TEST(Demangle, HostileRustV0IsBounded) {
  // Each back reference doubles what the one before it stands for.
  std::string bomb = "_RINvC3foo3barTlllE";
  for (int i = 0; i < 60; ++i) bomb += "TB7_B7_E";
  bomb += "E";
  EXPECT_LT(demangle(bomb).size(), 70000u);
  EXPECT_EQ(demangle("_R" + std::string(50000, 'N')), "_R" + std::string(50000, 'N'));
  EXPECT_EQ(demangle("_RB_"), "_RB_");
  EXPECT_EQ(demangle("_RNvB_3foo"), "_RNvB_3foo") << "a reference to itself";
}

// Each parameter is a pair of the one before: 300 bytes that stand for gigabytes.
TEST(Demangle, HostileCppIsBounded) {
  for (int levels : {20, 30, 60}) {
    std::string bomb = "_Z1fSt4pairIiiE";
    for (int i = 0; i < levels; ++i) {
      std::string id = i < 36
                           ? std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i])
                           : "1" + std::string(1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i - 36]);
      bomb += "S_IS" + id + "_S" + id + "_E";
    }
    EXPECT_EQ(demangle(bomb), bomb);
  }
}

// Found by fuzzing: the runtime's demangler does not come back from this one.
TEST(Demangle, NamesThatStopTheRuntimeStayMangled) {
  std::string name = "_ZmlAgssrmL2oHUH" + std::string(44, '\x89') + "(FFFF\x9c" + "FFF";
  EXPECT_EQ(demangle(name), name);
  EXPECT_EQ(demangle("_Z" + std::string(60, 'F')), "_Z" + std::string(60, 'F'));
}

TEST(Demangle, LongCppNamesAreNamedToo) {
  std::string name = "_ZN3app4callI";
  std::string arguments;
  for (int i = 0; i < 300; ++i) {
    name += "NS_4TypeE";
    arguments += i == 0 ? "app::Type" : ", app::Type";
  }
  name += "EEvv";
  ASSERT_GT(name.size(), 1024u);
  EXPECT_EQ(demangle(name), "void app::call<" + arguments + ">()");
}

TEST(Demangle, D) {
  EXPECT_EQ(demangle("_Dmain"), "D main");
  EXPECT_EQ(demangle("_D3std5stdio7writelnFAyaZv"), "std.stdio.writeln");
  EXPECT_EQ(demangle("_D3foo3Bar6__ctorMFZC3foo3Bar"), "foo.Bar.this");
  EXPECT_EQ(demangle("_DYNAMIC"), "_DYNAMIC");
}

TEST(Demangle, MutatedNamesNeverCrash) {
  const std::string seeds[] = {
      "_ZNSt6vectorIiSaIiEE9push_backEOi",
      "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
      "_RNvXCsgStHSCytQ6I_7mycrateNtB2_3FooNtB2_3Bar3baz",
      "_RINvC3foo3barFG_RL0_hEuE",
      "_RNvC7mycrateu8gdel_5qa",
      "_D3std5stdio7writelnFAyaZv",
      "_ZZN3fmt2v96detail10vformat_toIcEEvRNS1_6bufferIT_EENS0_17basic_string_viewIS4_EE3fooEv",
  };
  const std::string alphabet = "ESTINZKB0123456789_abcdefRLQPOFDGXYMCvul$.";
  std::mt19937 random(5);
  for (int i = 0; i < 30000; ++i) {
    std::string name = seeds[random() % std::size(seeds)];
    for (size_t k = 1 + random() % 4; k > 0; --k) {
      size_t at = 2 + random() % (name.size() - 2);
      switch (random() % 3) {
        case 0:
          name[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          name.erase(at, 1 + random() % 3);
          break;
        default:
          name.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
      }
      if (name.size() < 4) break;
    }
    EXPECT_LT(demangle(name).size(), 1u << 20);
  }
}

}  // namespace
}  // namespace assay::symbol
