#include "cli/output/terminal.h"

#include <cstdlib>
#include <string_view>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace assay::cli {
namespace {

// The first `columns` characters of UTF-8 text.
std::string_view first_columns(std::string_view text, int columns) {
  size_t at = 0;
  while (at < text.size() && columns > 0) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
    --columns;
  }
  return text.substr(0, at);
}

}  // namespace

bool write_out(FILE* file, const std::string& text) {
  return fwrite(text.data(), 1, text.size(), file) == text.size() && fflush(file) == 0;
}

bool wants_colour(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  bool refused = no_color != nullptr && *no_color != '\0';
  bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return isatty(fd) == 1 && !refused && !dumb;
}

int terminal_width(int fd, int otherwise) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return size.ws_col;
}

ProgressLine::ProgressLine(bool enabled) : enabled_(enabled && isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(const std::string& text) {
  if (!enabled_) return;
  say(stderr, "\r\033[K{}", first_columns(text, terminal_width(STDERR_FILENO, 80) - 1));
  fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  say(stderr, "\r\033[K");
  fflush(stderr);
  shown_ = false;
}

}  // namespace assay::cli
