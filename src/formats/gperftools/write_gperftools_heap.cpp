#include "formats/gperftools/write_gperftools_heap.h"

#include <algorithm>
#include <map>

#include "formats/export/text.h"

namespace assay::formats {
namespace {

struct Counts {
  int64_t inuse_objects = 0, inuse_bytes = 0, alloc_objects = 0, alloc_bytes = 0;

  void add(const TotalRow& row) {
    inuse_objects += row.inuse_objects;
    inuse_bytes += row.inuse_bytes;
    alloc_objects += row.alloc_objects;
    alloc_bytes += row.alloc_bytes;
  }
  std::string text() const {
    return fmt::format("{:>6}: {:>8} [{:>6}: {:>8}] @", inuse_objects, inuse_bytes, alloc_objects,
                       alloc_bytes);
  }
};

// The format knows one process: the one that allocated most.
model::ProcessId main_process(const SelectedRun& run, const std::vector<TotalRow>& rows) {
  std::map<uint32_t, int64_t> bytes;
  for (const TotalRow& row : rows) {
    if (row.heap) bytes[run.thread(row.thread).process.value] += row.alloc_bytes;
  }
  auto most = std::max_element(bytes.begin(), bytes.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  return {most == bytes.end() ? 0 : most->first};
}

// Where the process has the code of a frame; 0: nowhere.
uint64_t address_of(const run::Contents& contents, model::ProcessId process,
                    const model::Frame& frame) {
  const model::Module& module = contents.modules[frame.module.value];
  if (module.kind == model::ModuleKind::anonymous) return frame.address;
  for (const run::TimedMapping& timed : contents.mappings) {
    const model::Mapping& mapping = timed.mapping;
    bool holds = timed.process == process && mapping.module == frame.module &&
                 frame.address >= mapping.file_offset &&
                 frame.address - mapping.file_offset < mapping.end - mapping.start;
    // Readers take addresses for return addresses and look one byte earlier.
    if (holds) return mapping.start + (frame.address - mapping.file_offset) + 1;
  }
  return 0;
}

}  // namespace

void write_gperftools_heap(const SelectedRun& run, const std::vector<TotalRow>& rows,
                           Output& output) {
  const run::Contents& contents = run.contents();
  model::ProcessId process = main_process(run, rows);
  std::map<uint32_t, Counts> by_stack;
  Counts all;
  for (const TotalRow& row : rows) {
    if (!row.heap || run.thread(row.thread).process != process) continue;
    by_stack[row.stack.value].add(row);
    all.add(row);
  }
  output.write(fmt::format("heap profile: {} heapprofile\n", all.text()));
  std::map<uint32_t, uint64_t> addresses;  // by frame
  for (const auto& [stack, counts] : by_stack) {
    std::string line = counts.text();
    for (uint32_t at = stack; at != 0 && at < contents.stacks.size();) {
      const model::StackNode& node = contents.stacks[at];
      auto [known, is_new] = addresses.try_emplace(node.frame.value);
      if (is_new) known->second = address_of(contents, process, contents.frames[node.frame.value]);
      if (known->second != 0) line += fmt::format(" 0x{:016x}", known->second);
      at = node.parent.value < at ? node.parent.value : 0;
    }
    output.write(line + "\n");
  }
  output.write("\nMAPPED_LIBRARIES:\n");
  for (const run::TimedMapping& timed : contents.mappings) {
    if (timed.process != process) continue;
    const model::Mapping& mapping = timed.mapping;
    output.write(fmt::format("{:08x}-{:08x} r-xp {:08x} 00:00 0 {}\n", mapping.start, mapping.end,
                             mapping.file_offset,
                             clean_text(contents.modules[mapping.module.value].path)));
  }
}

}  // namespace assay::formats
