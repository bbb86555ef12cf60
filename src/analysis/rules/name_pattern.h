// NamePattern: how a rule names functions and modules: plain text in which `*` stands for anything.
//
// A function is compared by its bare name (no return type, arguments, clone or version suffix) and
// by that without leading underscores, so that "malloc" also matches "__libc_malloc"'s kin only
// where the rule says so: `*malloc`. Pure; never fails; `bare_name` gives views into its argument.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::analysis {

// "void ns::f<int>(char) [clone .cold]" → "ns::f<int>"; "(anonymous namespace)" is part of a name.
std::string_view bare_name(std::string_view function);

class NamePattern {
 public:
  explicit NamePattern(std::string_view text);

  bool matches(std::string_view name) const;
  const std::string& text() const { return text_; }
  bool exact() const { return parts_.size() == 1; }
  // What every match begins with; may be empty.
  std::string_view literal_prefix() const { return parts_.front(); }

 private:
  std::string text_;
  std::vector<std::string> parts_;  // between the stars
};

}  // namespace assay::analysis
