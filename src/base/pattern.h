// Pattern: an extended regular expression (POSIX) of the user's, found anywhere in a name.
//
// In: an expression and names of any length; out: whether it occurs. Not thread-safe. Failures: an
// expression that does not compile is an Error with the compiler's own words.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct re_pattern_buffer;

namespace assay {

class Pattern {
 public:
  static Result<Pattern> compile(const std::string& expression);
  bool found_in(std::string_view name) const;

 private:
  struct Free {
    void operator()(re_pattern_buffer* compiled) const;
  };
  explicit Pattern(std::unique_ptr<re_pattern_buffer, Free> compiled)
      : compiled_(std::move(compiled)) {}
  std::unique_ptr<re_pattern_buffer, Free> compiled_;
};

}  // namespace assay
