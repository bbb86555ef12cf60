#include "view/selection.h"

#include <charconv>

#include "analysis/accounted/chosen_paths.h"
#include "run/selection/chosen_threads.h"

namespace assay::view {

Result<int64_t> number(const Parameters& parameters, const std::string& name, int64_t otherwise,
                       int64_t least, int64_t most) {
  auto found = parameters.find(name);
  if (found == parameters.end()) return otherwise;
  const std::string& text = found->second;
  int64_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) {
    return fail("parameter {} is not a number", name);
  }
  if (value < least || value > most) {
    return fail("parameter {} must lie between {} and {}", name, least, most);
  }
  return value;
}

Result<Selection> select(const RunIndex& run, const Parameters& parameters) {
  auto asked = run::selection_among(parameters);
  if (!asked) return std::unexpected(asked.error());
  Selection selection;
  model::TimeSpan time = run::chosen_time(*asked, run.contents());
  selection.begin_ns = time.begin_ns;
  selection.end_ns = time.end_ns;
  if (asked->narrows_threads()) {
    auto threads = run::choose_threads(*asked, run.contents());
    if (!threads) return std::unexpected(threads.error());
    selection.threads = std::move(*threads);
    if (selection.threads.empty()) selection.threads.push_back(false);  // none, not all
  }
  auto paths = analysis::choose_paths(*asked, run.tree());
  if (!paths) return std::unexpected(paths.error());
  if (paths->empty()) return selection;
  selection.nodes.resize(run.node_count());
  for (uint32_t path = 0; path < paths->size(); ++path) {
    if ((*paths)[path]) selection.nodes[run.node_of_path(path)] = true;
  }
  return selection;
}

Result<std::string> page_fragment(const run::Contents& run, const run::Selection& asked) {
  std::string text;
  auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}{}={}", text.empty() ? "#" : "&", name, value);
  };
  if (asked.narrows_time()) {
    model::TimeSpan time = run::chosen_time(asked, run);
    if (time.empty()) return fail("the range leaves nothing of the run");
    add("from", std::to_string(time.begin_ns - run.info.window_begin_ns));
    add("to", std::to_string(time.end_ns - run.info.window_begin_ns));
  }
  if (!asked.narrows_threads()) return text;
  auto threads = run::choose_threads(asked, run);
  if (!threads) return std::unexpected(threads.error());
  std::string numbers;
  for (size_t i = 0; i < threads->size(); ++i) {
    if ((*threads)[i]) numbers += fmt::format("{}{}", numbers.empty() ? "" : ".", i);
  }
  add("threads", numbers);
  return text;
}

}  // namespace assay::view
