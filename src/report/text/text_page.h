// TextPage: lines of terminal text under construction, with their colours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/report.h"
#include "report/text/stack_lines.h"
#include "report/text/style.h"

namespace assay::report {

enum class Ink { plain, bold, dim, user, kernel, runqueue, blocked, idle, warning };

class TextPage {
 public:
  explicit TextPage(const Style& style);

  int width() const { return width_; }
  std::string ink(Ink ink, std::string_view text) const;
  void line(std::string_view text = "");  // trailing spaces are dropped
  void heading(std::string_view title, std::string_view remark = "");
  // Phrases joined by " · ", wrapped, each line after `indent` columns, the first after `first`.
  void phrases(std::string_view first, const std::vector<std::string>& phrases, int indent);
  // Words wrapped at spaces, printable, each line after the first indented.
  void paragraph(std::string_view first, std::string_view text, int indent,
                 Ink lines = Ink::plain);
  // One stack, leaf first: kernel frames on one line, recursion once, long middles elided.
  void stack(const std::vector<analysis::FrameText>& frames, size_t max_lines);
  std::string take() { return std::move(out_); }

 private:
  void frame(const StackLine& shown);

  bool colour_;
  int width_;
  std::string out_;
};

// The sections of the report.
void write_verdict(const analysis::Report& report, TextPage& page);
void write_resources(const analysis::Report& report, TextPage& page);
void write_findings(const analysis::Report& report, TextPage& page);
void write_locks(const analysis::Report& report, TextPage& page);
void write_categories(const analysis::Report& report, TextPage& page);
void write_next_step(const analysis::Report& report, TextPage& page);
void write_thread_time(const analysis::Report& report, TextPage& page);
void write_heap(const analysis::Report& report, TextPage& page);
void write_heap_leaks(const analysis::Report& report, TextPage& page);
void write_functions(const analysis::Report& report, TextPage& page);
void write_paths(const analysis::Report& report, TextPage& page);
void write_waits(const analysis::Report& report, TextPage& page);

}  // namespace assay::report
