// What `record` and `heap` have in common: the target, the run file, and the report at the end.
//
// In: the command line. Out: session::CaptureOptions, and a report on stdout. Failures: wrong usage
// is an Error; a run that cannot be read back is printed and becomes the exit status.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "analysis/report.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/flags/target_options.h"
#include "session/heap/heap_capture.h"
#include "session/lifecycle/capture_options.h"

namespace assay::cli {

using Render = std::string (*)(const analysis::Report& report, bool colour);
std::string whole_report(const analysis::Report& report, bool colour);

class CaptureFlags {
 public:
  void add_target(CLI::App& parser) { target_.add_to(parser); }
  void add_output(CLI::App& parser);
  void add_rest(CLI::App& parser);

  // All but the duration, which each command has its own default for.
  Result<void> fill(const Invocation& invocation, session::CaptureOptions& options) const;

  bool quiet() const { return quiet_; }
  bool names_output() const { return !output_.empty(); }

  // The report, printed unless all is to be quiet (as JSON where that was asked for, else in the
  // words of `render`).
  Result<analysis::Report> conclude(const std::string& run_path,
                                    Render render = whole_report) const;
  // The last lines: how long the target's threads were held, and where the run is.
  void show_end(const std::string& run_path, const std::vector<session::HeapHold>& holds) const;

 private:
  TargetOptions target_;
  std::string output_;
  bool overwrite_ = false;
  bool no_source_ = false;
  bool debuginfod_ = false;
  bool quiet_ = false;
  bool json_ = false;
};

}  // namespace assay::cli
