#include "session/record/stages.h"

#include <algorithm>

#include "base/clock.h"
#include "symbol/source_text.h"

namespace assay::session {
namespace {

symbol::Options symbol_options(const CaptureOptions& options) {
  symbol::Options out;
  out.cache_dir = options.cache_dir;
  out.debuginfod = options.debuginfod;
  return out;
}

reader::ReaderOptions reader_options(const CaptureOptions& options) {
  reader::ReaderOptions out;
  out.debuginfod = options.debuginfod;
  out.program = options.reader_program;
  return out;
}

}  // namespace

Stages::Stages(const CaptureOptions& options, const std::string& unwind_cache,
               const os::ProcFs& proc, evidence::Sink& sink, Mapped mapped)
    : sink_(sink),
      mapped_(std::move(mapped)),
      binaries(options.reader_program.empty()
                   ? nullptr
                   : std::make_unique<reader::RemoteBinaries>(reader_options(options))),
      processes(proc, sink),
      tasks(proc, processes, options.target.include_children),
      readers(reader_options(options)),
      symbolizer(readers.symbolizer(symbol_options(options))),
      unwinder(unwind::Unwinder::create(unwind_cache, readers.table_builder())),
      namer(*symbolizer, sink),
      spaces(proc, [this](pid_t pid, const model::Mapping& mapping, const model::Module& module,
                          bool is_new) { announce(pid, mapping, module, is_new); }),
      stacks(spaces, *unwinder, sink,
             [this](model::FrameId id, const model::Frame& frame) { namer.add(id, frame); }) {}

void Stages::announce(pid_t pid, const model::Mapping& mapping, const model::Module& module,
                      bool is_new) {
  if (is_new) {
    sink_.add_module(module);
    symbolizer->add_module(pid, mapping, module);
  }
  if (mapping.end == 0) return;
  if (mapped_) mapped_(pid, mapping, module);
  if (auto process = tasks.process(pid)) sink_.add_mapping(*process, mapping, monotonic_ns());
}

void Stages::finish(bool keep_source, std::initializer_list<const evidence::HotSource*> hot) {
  namer.finish();
  if (!keep_source) return;
  std::vector<pid_t> pids = tasks.pids();
  symbol::SourceText text(pids.empty() ? 0 : *std::min_element(pids.begin(), pids.end()));
  for (const evidence::HotSource* source : hot)
    source->write(stacks.frames(), stacks.stacks(), *symbolizer, text, sink_);
}

}  // namespace assay::session
