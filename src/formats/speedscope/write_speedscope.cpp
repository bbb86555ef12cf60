#include "formats/speedscope/write_speedscope.h"

#include <algorithm>
#include <map>

#include "formats/export/text.h"
#include "formats/export/wait_leaf.h"

namespace assay::formats {
namespace {

struct Span {
  TimeNs begin = 0;
  analysis::PathIndex path = 0;
  int64_t value = 0;
  std::optional<WaitLeaf> leaf = {};  // below the path
};

class Speedscope {
 public:
  explicit Speedscope(SelectedRun& run) : run_(run) {}

  Result<void> gather(Metric metric) {
    if (metric == Metric::cpu || metric == Metric::samples || metric == Metric::wall) {
      auto done = run_.for_each_sample([&](const model::Sample& sample) {
        add(sample.thread, metric,
            {sample.time, run_.tree().path_of(sample.stack),
             metric == Metric::samples ? 1 : sample.weight_ns});
      });
      if (!done) return done;
    }
    if (metric == Metric::cpu || metric == Metric::samples) return {};
    return run_.for_each_wait([&](const SelectedWait& selected) {
      if (metric == Metric::lock && selected.kind != analysis::BlockKind::lock) return;
      analysis::PathIndex path = run_.tree().path_of(selected.wait.stack);
      if (metric == Metric::wall) {
        add_with_leaves(selected, path);
        return;
      }
      int64_t value = metric == Metric::runqueue ? selected.runqueue_ns : selected.blocked_ns;
      if (metric == Metric::waits) value = selected.waits();
      add(selected.wait.thread, metric, {selected.begin_ns, path, value});
    });
  }

  void write(Output& output) {
    output.write("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",");
    output.write(fmt::format("\"exporter\":{},\"name\":{},\"activeProfileIndex\":{},\n",
                             json_text("assay " + run_.contents().info.assay_version),
                             json_text(run_.contents().info.target), heaviest()));
    frames(output);
    output.write("\"profiles\":[");
    bool first = true;
    for (auto& [key, spans] : profiles_) {
      output.write(first ? "\n" : ",\n");
      first = false;
      profile(key.first, key.second, spans, output);
    }
    output.write("\n]}\n");
  }

 private:
  using Key = std::pair<model::ThreadId, Metric>;

  void add(model::ThreadId thread, Metric metric, const Span& span) {
    if (span.value <= 0) return;
    std::vector<Span>& spans = profiles_[{thread, metric}];
    if (metric != Metric::wall && !spans.empty() && spans.back().path == span.path) {
      spans.back().value += span.value;
    } else {
      spans.push_back(span);
    }
  }

  // Between on-CPU samples of the same functions only its leaf tells a wait.
  void add_with_leaves(const SelectedWait& selected, analysis::PathIndex path) {
    model::ThreadId thread = selected.wait.thread;
    TimeNs runnable = selected.begin_ns + selected.blocked_ns;
    add(thread, Metric::wall,
        {selected.begin_ns, path, selected.blocked_ns, blocked_leaf(selected.kind)});
    add(thread, Metric::wall, {runnable, path, selected.runqueue_ns, kRunQueueLeaf});
    has_leaves_ = true;
  }

  // What opens first: the thread that ran most, or waited most where nothing ran.
  size_t heaviest() const {
    size_t best = 0, index = 0;
    std::pair<bool, int64_t> most{false, -1};
    for (const auto& [key, spans] : profiles_) {
      int64_t sum = 0;
      for (const Span& span : spans) sum += span.value;
      std::pair<bool, int64_t> rank{key.second == Metric::cpu, sum};
      if (rank > most) {
        most = rank;
        best = index;
      }
      ++index;
    }
    return best;
  }

  void frames(Output& output) const {
    output.write("\"shared\":{\"frames\":[{\"name\":\"[no stack]\"}");
    for (const analysis::Function& function : run_.tree().functions()) {
      std::string text = ",\n{\"name\":" + json_text(function.name);
      if (!function.file.empty()) {
        text += ",\"file\":" + json_text(function.file);
        if (function.line > 0) text += fmt::format(",\"line\":{}", function.line);
      } else if (!function.module.empty()) {
        text += ",\"file\":" + json_text(function.module);
      }
      output.write(text + "}");
    }
    for (WaitLeaf leaf = 0; has_leaves_ && leaf < kWaitLeafCount; ++leaf) {
      output.write(",\n{\"name\":" + json_text(wait_leaf_name(leaf)) + "}");
    }
    output.write("]},\n");
  }

  void profile(model::ThreadId id, Metric metric, std::vector<Span>& spans, Output& output) const {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.begin < b.begin; });
    int64_t sum = 0;
    for (const Span& span : spans) sum += span.value;
    const model::Thread& thread = run_.thread(id);
    std::string name = fmt::format("{} · {} {} · {}", metric_name(metric), thread.name, thread.tid,
                                   process_name(thread));
    output.write(
        fmt::format("{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{}\",\"startValue\":0,"
                    "\"endValue\":{},\n\"samples\":[",
                    json_text(name), is_time(metric) ? "nanoseconds" : "none", sum));
    std::string text;
    for (size_t i = 0; i < spans.size(); ++i) {
      text += i == 0 ? "[" : ",[";
      stack(spans[i].path, text);
      if (spans[i].leaf) {
        size_t first_leaf = run_.tree().functions().size() + 1;
        fmt::format_to(std::back_inserter(text), ",{}",
                       first_leaf + static_cast<size_t>(*spans[i].leaf));
      }
      text += ']';
      if (text.size() > 1 << 16) {
        output.write(text);
        text.clear();
      }
    }
    text += "],\n\"weights\":[";
    for (size_t i = 0; i < spans.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ",", spans[i].value);
    }
    output.write(text + "]}");
  }

  std::string process_name(const model::Thread& thread) const {
    return thread.process.value < run_.contents().processes.size()
               ? run_.process_label(thread.process)
               : "unknown process";
  }

  // Root first; frame 0 stands for samples without a stack.
  void stack(analysis::PathIndex path, std::string& text) const {
    if (path == 0) {
      text += '0';
      return;
    }
    std::vector<analysis::FunctionIndex> functions;
    for (; path != 0; path = run_.tree().paths()[path].parent) {
      functions.push_back(run_.tree().paths()[path].function);
    }
    for (size_t i = functions.size(); i-- > 0;) {
      fmt::format_to(std::back_inserter(text), "{}{}", functions[i] + 1, i > 0 ? "," : "");
    }
  }

  SelectedRun& run_;
  std::map<Key, std::vector<Span>> profiles_;
  bool has_leaves_ = false;
};

}  // namespace

Result<void> write_speedscope(SelectedRun& run, std::optional<Metric> metric, Output& output) {
  Speedscope file(run);
  std::vector<Metric> metrics{Metric::cpu, Metric::off};
  if (metric) metrics = {*metric};
  for (Metric each : metrics) {
    if (auto done = file.gather(each); !done) return done;
  }
  file.write(output);
  return {};
}

}  // namespace assay::formats
