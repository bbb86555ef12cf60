// What the terminal is like: colours, width, and a line of progress that rewrites itself.
//
// NO_COLOR is honoured; progress appears on stderr and only when that is a terminal.
#pragma once

#include <string>

namespace assay::cli {

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
