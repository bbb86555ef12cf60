#include "report/text/text_page.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "report/printable.h"
#include "report/text/words.h"

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

// Functions that every kernel stack passes: they tell nothing.
constexpr std::string_view kKernelPassages[]{"__schedule",
                                             "schedule",
                                             "preempt_schedule",
                                             "schedule_timeout",
                                             "schedule_hrtimeout_range",
                                             "schedule_hrtimeout_range_clock",
                                             "schedule_preempt_disabled",
                                             "x64_sys_call",
                                             "do_syscall_64",
                                             "entry_SYSCALL_64_after_hwframe"};
// Functions that every thread begins in.
constexpr std::string_view kEntries[]{"_start",
                                      "__libc_start_main",
                                      "__libc_start_main_impl",
                                      "clone3",
                                      "__libc_start_call_main",
                                      "__clone3",
                                      "start_thread",
                                      "clone"};

bool in(std::span<const std::string_view> names, const std::string& function) {
  return std::find(names.begin(), names.end(), function) != names.end();
}

// The kernel's part of a stack on one line, innermost first; the outermost are cut, not the middle.
std::string kernel_chain(std::span<const analysis::FrameText> frames, int width) {
  std::string chain;
  for (const analysis::FrameText& frame : frames) {
    if (in(kKernelPassages, frame.function)) continue;
    std::string name = fitted(frame.function, width - 4);
    std::string longer = chain.empty() ? name : fmt::format("{} ← {}", chain, name);
    if (display_width(longer) > width - 4) return chain + " ← …";
    chain = std::move(longer);
  }
  return chain.empty() ? fitted(frames.front().function, width) : chain;
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
    text += "  " + ink(Ink::dim, fitted(remark, width_ - display_width(title) - 2));
  }
  line(text);
}

void TextPage::phrases(std::string_view first, const std::vector<std::string>& phrases,
                       int indent) {
  std::string current(first);
  bool fresh = true;
  for (const std::string& phrase : phrases) {
    std::string text = fitted(phrase, width_ - indent);
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

void TextPage::paragraph(std::string_view first, std::string_view text, int indent, Ink lines) {
  std::string current(first), words = printable(text);
  bool fresh = true;
  for (size_t at = 0; at < words.size();) {
    size_t end = std::min(words.find(' ', at), words.size());
    std::string word = elide_middle(std::string_view(words).substr(at, end - at), width_ - indent);
    if (!fresh && display_width(current) + 1 + display_width(word) > width_) {
      line(ink(lines, current));
      current = std::string(static_cast<size_t>(indent), ' ');
      fresh = true;
    }
    current += (fresh ? "" : " ") + word;
    fresh = false;
    at = end + 1;
  }
  line(ink(lines, current));
}

void TextPage::frame(const StackLine& shown) {
  if (shown.frame == nullptr) {
    line(fmt::format("{}{}", kStackIndent, ink(Ink::dim, cycle_text(shown))));
    return;
  }
  const analysis::FrameText& frame = *shown.frame;
  int columns = width_ - static_cast<int>(kStackIndent.size()) - kWhereColumns - 2;
  bool marker = frame.kind == analysis::CodeKind::marker;
  std::string where = marker ? "" : where_text(frame.file, frame.line, frame.module);
  std::string note = (frame.inlined ? " (inlined)" : "") + times_text(shown);
  std::string name = function_name(frame.function, columns - display_width(note));
  line(fmt::format("{}{}  {}", kStackIndent, left(name + note, columns),
                   ink(Ink::dim, fitted(where, kWhereColumns))));
}

void TextPage::stack(const std::vector<analysis::FrameText>& frames, size_t max_lines) {
  if (frames.empty()) {
    line(fmt::format("{}[no stack]", kStackIndent));
    return;
  }
  size_t user = 0, end = frames.size();
  while (user < end && frames[user].kind == analysis::CodeKind::kernel) ++user;
  if (user > 0) {
    int columns = width_ - static_cast<int>(kStackIndent.size()) - 9;
    std::string chain = kernel_chain(std::span(frames).first(user), columns);
    line(fmt::format("{}{}", kStackIndent, ink(Ink::kernel, "[kernel] " + chain)));
  }
  // Where lines are short, how every thread begins is the first to go.
  while (end - user > max_lines && in(kEntries, frames[end - 1].function)) --end;
  std::vector<StackLine> lines = stack_lines(std::span(frames).subspan(user, end - user));
  // The innermost frames show the work, the outermost frames show its caller. One line between them
  // says how many frames are hidden.
  size_t outer = 2, inner = max_lines - outer - 1;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines.size() > max_lines && i == inner) {
      size_t hidden = 0;
      for (; i < lines.size() - outer; ++i) hidden += lines[i].frames;
      line(fmt::format("{}{}", kStackIndent,
                       ink(Ink::dim, fmt::format("… {} frames …", grouped(hidden)))));
    }
    frame(lines[i]);
  }
}

}  // namespace assay::report
