// ItaniumParser: reads a C++ linker's name (Itanium ABI) within limits of depth, work and size.
//
// The runtime's own demangler stops at 1,024 bytes, and a hostile name of 300 bytes makes it fill
// the memory: each substitution may stand for twice what the one before it stood for. This parser
// knows how large a name becomes, without making it, beyond a limit; its text is used where the
// runtime's demangler cannot be. Threads: a value; one per name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::symbol {

class ItaniumParser {
 public:
  explicit ItaniumParser(std::string_view name) : text_(name) {}

  // The demangled name; empty when malformed, not understood or too large.
  std::string run();
  // Some template parameter was shown as "auto" because what it stands for is not known here.
  bool has_unknown() const { return has_unknown_; }

 private:
  struct Name {
    std::string text;
    std::string qualifiers;  // of a member function: " const"
    bool has_arguments =
        false;  // ends in template arguments: its function type begins with a return type
    bool no_return = false;  // constructors, destructors and conversions have none
  };
  struct Type {
    std::string before, after;  // around a declarator: "void (" and ")(int)"
    bool is_function = false;
    bool is_array = false;
    std::string text() const { return before + after; }
  };
  class Deeper;

  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool eat(char c);
  bool eat(std::string_view s);
  void fail() { failed_ = true; }
  void grow(const std::string& made);
  uint64_t number();

  std::string encoding();
  std::string special_name();
  std::string parameters(bool has_return, std::string& returned);
  Name name();
  Name nested_name();
  Name local_name();
  std::string unqualified_name(const std::string& scope, Name& info);
  std::string source_name();
  std::string operator_name(Name& info);
  std::string unnamed_type();
  std::string abi_tags();
  std::string template_arguments();
  std::string template_argument();
  std::string template_parameter();
  std::string substitution();
  std::string qualifiers();

  Type type();
  Type builtin_or_special();
  Type extended_type();
  Type array_type();
  Type function_type();
  Type pointer_to(Type inner, const char* sign);

  std::string expression();
  std::string named_expression();
  std::string expression_list();
  std::string literal();
  std::string call_offset();

  const std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
  bool has_unknown_ = false;
  int depth_ = 0;
  int steps_ = 0;
  size_t made_bytes_ = 0;
  bool keep_arguments_ = true;  // template arguments being read belong to the function itself
  std::vector<std::string> substitutions_;
  std::vector<std::string> arguments_;  // of the function: what T_ stands for
};

}  // namespace assay::symbol
