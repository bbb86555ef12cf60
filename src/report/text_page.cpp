#include "report/text_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/printable.h"
#include "report/words.h"

namespace assay::report {
namespace {

constexpr int kNarrowest = 80;
constexpr int kWidest = 240;
constexpr int kWhereColumns = 26;
constexpr std::string_view kStackIndent = "        ";

std::string_view code_of(Ink ink) {
  switch (ink) {
    case Ink::plain:
      return "";
    case Ink::bold:
      return "\x1b[1m";
    case Ink::dim:
      return "\x1b[2m";
    case Ink::user:
      return "\x1b[32m";
    case Ink::kernel:
      return "\x1b[36m";
    case Ink::runqueue:
      return "\x1b[33m";
    case Ink::blocked:
      return "\x1b[35m";
    case Ink::idle:
      return "\x1b[2m";
    case Ink::warning:
      return "\x1b[1;33m";
  }
  return "";
}

// What every blocked stack ends in; it tells nothing.
bool is_scheduler(const std::string& function) {
  return function == "__schedule" || function == "schedule" || function == "preempt_schedule" ||
         function == "schedule_timeout" || function == "schedule_hrtimeout_range" ||
         function == "schedule_hrtimeout_range_clock" || function == "schedule_preempt_disabled";
}

}  // namespace

TextPage::TextPage(const Style& style)
    : colour_(style.colour), width_(std::clamp(style.width, kNarrowest, kWidest)) {}

std::string TextPage::ink(Ink ink, std::string_view text) const {
  if (!colour_ || ink == Ink::plain || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(ink), text);
}

void TextPage::line(std::string_view text) {
  out_ += text.substr(0, text.find_last_not_of(' ') + 1);
  out_ += '\n';
}

void TextPage::heading(std::string_view title, std::string_view remark) {
  line();
  std::string text = ink(Ink::bold, title);
  if (!remark.empty()) {
    text += "  " + ink(Ink::dim, short_name(remark, width_ - display_width(title) - 2));
  }
  line(text);
}

void TextPage::phrases(std::string_view first, const std::vector<std::string>& phrases,
                       int indent) {
  std::string current(first);
  bool fresh = true;
  for (const std::string& phrase : phrases) {
    std::string text = short_name(phrase, width_ - indent);
    if (!fresh && display_width(current) + 3 + display_width(text) > width_) {
      line(current);
      current = std::string(static_cast<size_t>(indent), ' ');
      fresh = true;
    }
    current += (fresh ? "" : " · ") + text;
    fresh = false;
  }
  line(current);
}

void TextPage::paragraph(std::string_view first, std::string_view text, int indent) {
  std::string current(first), words = printable(text);
  bool fresh = true;
  for (size_t at = 0; at < words.size();) {
    size_t end = std::min(words.find(' ', at), words.size());
    std::string word = elide_middle(std::string_view(words).substr(at, end - at), width_ - indent);
    if (!fresh && display_width(current) + 1 + display_width(word) > width_) {
      line(current);
      current = std::string(static_cast<size_t>(indent), ' ');
      fresh = true;
    }
    current += (fresh ? "" : " ") + word;
    fresh = false;
    at = end + 1;
  }
  line(current);
}

void TextPage::frame(const analysis::FrameText& frame) {
  int columns = width_ - static_cast<int>(kStackIndent.size()) - kWhereColumns - 2;
  bool marker = frame.kind == analysis::CodeKind::marker;
  std::string where = marker ? "" : where_text(frame.file, frame.line, frame.module);
  std::string name = frame.function + (frame.inlined ? " (inlined)" : "");
  line(fmt::format("{}{}  {}", kStackIndent, left(name, columns),
                   ink(Ink::dim, short_name(where, kWhereColumns))));
}

void TextPage::stack(const std::vector<analysis::FrameText>& frames, size_t max_lines) {
  if (frames.empty()) {
    line(fmt::format("{}[no stack]", kStackIndent));
    return;
  }
  size_t user = 0;
  std::string kernel;
  while (user < frames.size() && frames[user].kind == analysis::CodeKind::kernel) {
    const std::string& function = frames[user++].function;
    // A kernel-only stack of scheduler functions still shows one line.
    if (is_scheduler(function) && !(user == frames.size() && kernel.empty())) continue;
    kernel += (kernel.empty() ? "" : " ← ") + function;
  }
  if (!kernel.empty()) {
    int columns = width_ - static_cast<int>(kStackIndent.size()) - 9;
    line(fmt::format("{}{}", kStackIndent,
                     ink(Ink::kernel, "[kernel] " + short_name(kernel, columns))));
  }
  size_t count = frames.size() - user;
  // The innermost frames say what is done, the outermost who asked; one line says how many it
  // hides.
  size_t outer = 2, inner = max_lines - outer - 1;
  for (size_t i = 0; i < count; ++i) {
    if (count > max_lines && i == inner) {
      size_t hidden = count - inner - outer;
      line(fmt::format("{}{}", kStackIndent, ink(Ink::dim, fmt::format("… {} frames …", hidden))));
      i += hidden;
    }
    frame(frames[user + i]);
  }
}

}  // namespace assay::report
