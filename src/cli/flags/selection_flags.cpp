#include "cli/flags/selection_flags.h"

#include "base/units.h"

namespace assay::cli {
namespace {

Result<void> read_time(const std::string& text, std::optional<int64_t>& out) {
  if (text.empty()) return {};
  auto ns = parse_duration_ns(text);
  if (!ns) return std::unexpected(ns.error());
  out = *ns;
  return {};
}

}  // namespace

void SelectionFlags::add_to(CLI::App& parser) {
  parser.add_option("--pid", selection_.pids, "Only these processes")->type_name("PID");
  parser.add_option("--tid", selection_.tids, "Only these threads")->type_name("TID");
  parser.add_option("--pool", selection_.pools, "Only these thread pools")->type_name("POOL");
  parser.add_option("--process", selection_.processes, "Only these processes: role, name or pid")
      ->type_name("PROCESS");
  parser
      .add_option("--thread", selection_.thread,
                  "Only threads whose name matches, or the thread with this id")
      ->type_name("REGEX");
  parser
      .add_option("--time", time_,
                  "Only this part of the run: 2s..5s, 2s.. or ..500ms, from its beginning")
      ->type_name("FROM..TO");
}

void SelectionFlags::add_stacks_to(CLI::App& parser) {
  parser.add_option("--from", from_, "Only what comes after this time (from the run's beginning)")
      ->type_name("TIME");
  parser.add_option("--to", to_, "Only what comes before this time (from the run's beginning)")
      ->type_name("TIME");
  parser.add_option("--focus", selection_.focus, "Only stacks with a function whose name matches")
      ->type_name("REGEX");
  parser
      .add_option("--ignore", selection_.ignore,
                  "Leave out stacks with a function whose name matches")
      ->type_name("REGEX");
  parser.add_flag("--no-idle", selection_.without_idle,
                  "Leave out waiting for work; keep the waits that hold work up");
}

Result<run::Selection> SelectionFlags::selection() const {
  run::Selection selection = selection_;
  if (!time_.empty()) {
    if (!from_.empty() || !to_.empty()) {
      return fail_with_remedy("--time cannot be combined with --from and --to",
                              "use one or the other");
    }
    if (auto read = run::parse_time_range(time_, selection); !read) {
      return std::unexpected(read.error());
    }
  }
  if (auto read = read_time(from_, selection.from_ns); !read) return std::unexpected(read.error());
  if (auto read = read_time(to_, selection.to_ns); !read) return std::unexpected(read.error());
  return selection;
}

Result<void> refuse_time(const run::Selection& selection) {
  if (!selection.narrows_time()) return {};
  return fail_with_remedy(
      "a report is about the whole window: load, counters and losses are not known for a part of "
      "its time",
      "assay export, view and sql take --time; or record that time alone");
}

}  // namespace assay::cli
