#include "cli/flags/capture_flags.h"

#include <unistd.h>

#include "analysis/analyse.h"
#include "cli/flags/group_flag.h"
#include "cli/output/default_output.h"
#include "cli/source_files.h"
#include "cli/output/terminal.h"
#include "report/json/json.h"
#include "report/text/text.h"
#include "run/reader.h"
#include "session/record/cache_dir.h"

namespace assay::cli {

std::string whole_report(const analysis::Report& report, bool colour) {
  return report::render_text(report, {.colour = colour});
}

void CaptureFlags::add_output(CLI::App& parser) {
  parser.add_option("-o,--output", output_, "Run file to write (default TARGET-DATE-TIME.assay)")
      ->type_name("FILE");
}

void CaptureFlags::add_rest(CLI::App& parser) {
  parser.add_flag("--overwrite", overwrite_, "Replace the run file if it exists");
  parser.add_flag("--no-source", no_source_, "Keep no source text in the run file");
  parser.add_flag("--debuginfod", debuginfod_,
                  "Fetch missing debug files from the servers in DEBUGINFOD_URLS");
  parser.add_flag("-q,--quiet", quiet_, "No progress and no report");
  parser.add_flag("--json", json_,
                  "Print the report as JSON; what a launched command prints goes to stderr");
  add_group_flag(parser);
}

Result<void> CaptureFlags::fill(const Invocation& invocation,
                                session::CaptureOptions& options) const {
  auto spec = target_.spec(invocation.launched_command);
  if (!spec) return std::unexpected(spec.error());
  options.target = *spec;
  options.target.output_to_stderr = json_;
  options.target_text = target_.text(invocation.launched_command);
  options.command_line = invocation.command_line;
  options.output = output_.empty() ? default_output(options.target_text) : output_;
  options.overwrite = overwrite_;
  options.source = !no_source_;
  options.debuginfod = debuginfod_;
  options.cache_dir = session::default_cache_dir();
  options.reader_program = session::kOwnProgram;
  options.gives_up_rights = true;
  return {};
}

Result<analysis::Report> CaptureFlags::conclude(const std::string& run_path, Render render) const {
  auto reader = run::Reader::open(run_path);
  if (!reader) return std::unexpected(reader.error());
  analysis::Options options;
  options.run_path = run_path;
  options.source = source_lines(**reader, false);
  auto report = analysis::analyse(**reader, options);
  if (!report || quiet_) return report;
  say(stdout, "{}",
      json_ ? report::render_json(*report) + "\n" : render(*report, wants_colour(STDOUT_FILENO)));
  return report;
}

void CaptureFlags::show_end(const std::string& run_path,
                            const std::vector<session::HeapHold>& holds) const {
  for (const session::HeapHold& hold : holds) say(stderr, "{}\n", session::to_text(hold));
  say(stderr, "run file: {}   (assay report {})\n", run_path, run_path);
}

}  // namespace assay::cli
