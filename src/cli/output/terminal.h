// What the terminal is like: colours, width, and a line of progress that rewrites itself.
//
// NO_COLOR is honoured; progress appears on stderr and only when that is a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace assay::cli {

// Prints. A pipe whose reader is gone is no failure: it must neither abort a capture nor change its
// exit status. False when not all of it could be written.
bool write_out(FILE* file, const std::string& text);

template <class... Args>
bool say(FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  return write_out(file, fmt::format(format, std::forward<Args>(args)...));
}

bool wants_colour(int fd);  // a terminal, and NO_COLOR unset, and TERM not "dumb"
int terminal_width(int fd, int otherwise);

class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);  // cut to the terminal's width
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
};

}  // namespace assay::cli
