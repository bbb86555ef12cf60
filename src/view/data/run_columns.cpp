// tree_columns(), series_columns() and meta_json(): what a run holds, whatever is selected.
#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "model/display_name.h"
#include "view/data/columns.h"
#include "view/queries.h"

namespace assay::view {
namespace {

using Json = nlohmann::ordered_json;

// Gives each distinct text one number.
class Texts {
 public:
  uint32_t intern(std::string_view text) {
    auto [it, added] = known_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (added) texts_.push_back(text);
    return it->second;
  }
  const std::vector<std::string_view>& all() const { return texts_; }

 private:
  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, uint32_t> known_;
};

// Names are hostile and may be 100 kB long; what is shown in a rectangle is not.
constexpr size_t kLongestShortName = 200;

Json thread_json(const RunIndex& run, const model::Thread& thread) {
  return {{"id", thread.id.value},
          {"process", thread.process.value},
          {"tid", thread.tid},
          {"name", thread.name},
          {"pool", thread.pool.empty() ? thread.name : thread.pool},
          {"begin_ns", std::max<int64_t>(0, thread.begin_ns - run.begin_ns())},
          {"end_ns", std::min(thread.end_ns, run.end_ns()) - run.begin_ns()}};
}

}  // namespace

std::string meta_json(const RunIndex& run) {
  const run::Contents& contents = run.contents();
  Json threads = Json::array(), processes = Json::array(), states = Json::array();
  for (const model::Thread& thread : contents.threads) threads.push_back(thread_json(run, thread));
  for (const model::Process& process : contents.processes) {
    processes.push_back({{"id", process.id.value},
                         {"pid", process.pid},
                         {"comm", process.comm},
                         {"exe", process.exe},
                         {"role", process.role}});
  }
  for (int state = 0; state < kStateCount; ++state) {
    auto id = static_cast<ThreadState>(state);
    states.push_back({{"id", state_id(id)}, {"name", state_name(id)}});
  }
  Json json{{"run", run.path().substr(run.path().rfind('/') + 1)},
            {"path", run.path()},
            {"window_ns", run.window_ns()},
            {"utc_begin_ns", contents.info.utc_begin_ns},
            {"sample_period_ns", contents.info.sample_period_ns},
            {"backend", contents.info.backend},
            {"oncpu_event", contents.info.oncpu_event},
            {"has_waits", run.has_waits()},
            {"heap_only", contents.is_heap_alone()},
            {"nodes", run.node_count()},
            {"states", states},
            {"processes", processes},
            {"threads", threads}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string tree_columns(const RunIndex& run) {
  const auto& functions = run.tree().functions();
  Texts modules, files;
  std::vector<std::string> shortened;
  shortened.reserve(functions.size());
  std::vector<std::string_view> names, short_names;
  std::vector<uint32_t> module, file, line, kind;
  for (const analysis::Function& function : functions) {
    names.push_back(function.name);
    std::string text = function.name.size() > 64 * kLongestShortName
                           ? std::string(function.name.substr(0, kLongestShortName))
                           : model::short_name(function.name);
    if (text.size() > kLongestShortName) text.resize(kLongestShortName);
    shortened.push_back(text == function.name ? std::string() : std::move(text));
    module.push_back(modules.intern(function.module));
    file.push_back(files.intern(function.file));
    line.push_back(function.line);
    kind.push_back(static_cast<uint32_t>(function.kind) | (function.named ? 0 : 4));
  }
  short_names.assign(shortened.begin(), shortened.end());
  std::vector<uint32_t> inlined;
  for (NodeIndex node = 0; node < run.node_count(); ++node) {
    if (run.inlined()[node]) inlined.push_back(node);
  }
  std::vector<int64_t> inlined_deltas(inlined.begin(), inlined.end());
  Columns table("tree");
  table.add("depth", run.depths());
  table.add("function", run.functions());
  table.add("category", run.categories());
  table.add_deltas("inlined", inlined_deltas);
  table.add_strings("name", names);
  table.add_strings("short", short_names);  // empty: as the name
  table.add("module", module);
  table.add("file", file);
  table.add("line", line);
  table.add("kind", kind);
  table.add_strings("modules", modules.all());
  table.add_strings("files", files.all());
  table.add_strings("categories", run.category_names());
  return table.finish();
}

Result<std::string> series_columns(const RunIndex& run, const run::Reader& reader,
                                   size_t most_points) {
  std::vector<std::string_view> names, units, labels;
  std::vector<uint32_t> scopes, kinds, owners, counts;
  std::vector<int64_t> times, values;
  for (const model::Series& series : run.contents().series) {
    auto points = reader.points(series.id);
    if (!points) return std::unexpected(points.error());
    if (points->empty()) continue;
    names.push_back(series.name);
    units.push_back(series.unit);
    labels.push_back(series.label);
    scopes.push_back(static_cast<uint32_t>(series.scope));
    kinds.push_back(static_cast<uint32_t>(series.kind));
    owners.push_back(series.owner);
    // Every nth point, and always the last: a counter's end is what its total is read from.
    size_t step = std::max<size_t>(1, (points->size() + most_points - 1) / most_points);
    uint32_t kept = 0;
    for (size_t i = 0; i < points->size(); ++i) {
      if (i % step != 0 && i + 1 != points->size()) continue;
      times.push_back((*points)[i].time - run.begin_ns());
      values.push_back((*points)[i].value);
      ++kept;
    }
    counts.push_back(kept);
  }
  Columns table("series");
  table.add_strings("name", names);
  table.add_strings("unit", units);
  table.add_strings("label", labels);
  table.add("scope", scopes);
  table.add("kind", kinds);
  table.add("owner", owners);
  table.add("points", counts);
  table.add_deltas("time", times);
  table.add_deltas("value", values);
  return table.finish();
}

}  // namespace assay::view
