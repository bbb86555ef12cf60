#include "load/argument_line.h"

namespace assay::load {

Result<std::vector<std::string>> split_arguments(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    bool escapes = c == '\\' && quote != '\'' && i + 1 < line.size() &&
                   (quote == 0 || line[i + 1] == '"' || line[i + 1] == '\\');
    if (escapes) {
      word += line[++i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return fail("a quote {} is not closed in: {}", quote, line);
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace assay::load
