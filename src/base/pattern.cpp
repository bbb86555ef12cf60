#include "base/pattern.h"

#include <regex.h>

namespace assay {

void Pattern::Free::operator()(re_pattern_buffer* compiled) const {
  regfree(compiled);
  delete compiled;
}

Result<Pattern> Pattern::compile(const std::string& expression) {
  auto compiled = std::make_unique<regex_t>();
  int code = regcomp(compiled.get(), expression.c_str(), REG_EXTENDED | REG_NOSUB);
  if (code != 0) {
    char words[256] = {};
    regerror(code, compiled.get(), words, sizeof words);
    return fail("'{}' is no regular expression: {}", expression, words);
  }
  return Pattern(std::unique_ptr<re_pattern_buffer, Free>(compiled.release()));
}

bool Pattern::found_in(std::string_view name) const {
  // A name is hostile and may be huge; what makes it known stands in its beginning.
  constexpr size_t kLongest = 4096;
  regmatch_t range{0, static_cast<regoff_t>(std::min(name.size(), kLongest))};
  return regexec(compiled_.get(), name.data(), 1, &range, REG_STARTEND) == 0;
}

}  // namespace assay
