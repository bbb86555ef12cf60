#include "formats/perf/write_perf_script.h"

#include <unordered_map>

#include "formats/export/stack_text.h"
#include "formats/export/text.h"

namespace assay::formats {
namespace {

class Script {
 public:
  Script(const SelectedRun& run, Output& output) : run_(run), output_(output) {}

  void write(model::ThreadId id, int cpu, TimeNs time, int64_t period, std::string_view event,
             model::StackId stack) {
    const model::Thread& thread = run_.thread(id);
    const model::Process& process = run_.process_of(id);
    std::string name =
        clean_text(thread.name.empty() ? model::process_name(process) : thread.name, 64);
    output_.write(fmt::format("{} {}/{}", name.empty() ? "?" : name, process.pid, thread.tid));
    if (cpu >= 0) output_.write(fmt::format(" [{:03}]", cpu));
    output_.write(fmt::format(" {}.{:06}: {:>10} {}:\n", time / kNsPerSecond,
                              time % kNsPerSecond / kNsPerUs, period, event));
    output_.write(text_of(stack));
    output_.write("\n");
  }

 private:
  const std::string& text_of(model::StackId stack) {
    auto [it, added] = texts_.try_emplace(stack);
    if (!added) return it->second;
    for (const NamedFrame& frame : named_frames(run_.contents(), stack)) {
      std::string name = frame.location ? clean_text(frame.location->function) : "[unknown]";
      std::string where = frame.inlined ? "inlined"
                                        : clean_text(frame.module->kind == model::ModuleKind::kernel
                                                         ? "[kernel.kallsyms]"
                                                         : frame.module->path);
      it->second += fmt::format("\t{:16x} {} ({})\n", frame.address, name, where);
    }
    return it->second;
  }

  const SelectedRun& run_;
  Output& output_;
  std::unordered_map<model::StackId, std::string> texts_;
};

}  // namespace

Result<void> write_perf_script(SelectedRun& run, Metric metric, Output& output) {
  const model::RunInfo& info = run.contents().info;
  Script script(run, output);
  bool samples = metric == Metric::cpu || metric == Metric::samples || metric == Metric::wall;
  bool waits = !samples || metric == Metric::wall;
  std::string event = info.oncpu_event.empty() ? "cpu-clock" : clean_text(info.oncpu_event, 64);
  if (samples) {
    auto done = run.for_each_sample([&](const model::Sample& sample) {
      script.write(sample.thread, sample.cpu, sample.time, sample.weight_ns, event, sample.stack);
    });
    if (!done) return done;
  }
  if (!waits) return {};
  return run.for_each_wait([&](const SelectedWait& selected) {
    if (metric == Metric::lock && selected.kind != analysis::BlockKind::lock) return;
    bool blocked = metric != Metric::runqueue && selected.blocked_ns > 0;
    bool queued = metric == Metric::runqueue || metric == Metric::wall;
    if (blocked) {
      script.write(selected.wait.thread, -1, selected.begin_ns, selected.blocked_ns, "off-cpu",
                   selected.wait.stack);
    }
    if (queued && selected.runqueue_ns > 0) {
      script.write(selected.wait.thread, -1, selected.begin_ns + selected.blocked_ns,
                   selected.runqueue_ns, "runqueue", selected.wait.stack);
    }
  });
}

}  // namespace assay::formats
