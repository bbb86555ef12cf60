#include "unwind/unwinder.h"

#include <algorithm>
#include <unordered_map>

#include "os/process/module_file.h"
#include "unwind/arch_x86_64.h"
#include "unwind/code_map.h"
#include "unwind/table/build_from_file.h"
#include "unwind/table/table_builder.h"
#include "unwind/table/table_store.h"
#include "unwind/walk_cache.h"
#include "unwind/walker.h"

namespace assay::unwind {

namespace {

using Arch = X86_64;
using model::StackEnd;

constexpr size_t kMaxProcesses = 1024;  // with a flat map each; rebuilt when they come back

std::shared_ptr<const Table> load_vdso(const TableStore& store) {
  const os::VdsoImage& vdso = os::vdso_image();
  return store.get({.build_id = "[vdso]" + vdso.build_id}, [&]() -> Result<std::vector<std::byte>> {
    auto image = ElfFile::open_memory(vdso.bytes);
    if (!image) return std::unexpected(image.error());
    return build_table(**image, vdso.build_id);
  });
}

// The row that holds at an address; kNoCfi where there is no table.
Row row_at(const CodeMap& code, uint64_t address) {
  const CodeRange* range = code.find(address);
  if (!range || !range->table) return {kNoCfi};
  uint32_t row = range->table->find(address + range->to_text);
  return row < range->table->header->row_count ? range->table->rows[row] : Row{kNoCfi};
}

class TableUnwinder final : public Unwinder {
 public:
  TableUnwinder(const std::string& cache_dir, BuildTable build)
      : store_(cache_dir), build_(build ? std::move(build) : build_from_file) {}

  void prepare(pid_t pid, const model::Mapping& mapping, const model::Module& module) override;
  const UserStack& unwind(const RawStack& raw, const model::AddressSpace& space) override;
  void forget_thread(pid_t tid) override { walks_.forget(tid); }
  std::shared_ptr<const Table> table_of(model::ModuleId module) const override {
    return module.value < tables_.size() ? tables_[module.value] : nullptr;
  }
  const UnwindStats& stats() const override { return stats_; }

 private:
  struct Process {
    const model::AddressSpace* space = nullptr;
    uint64_t generation = 0, tables = 0;  // of what `code` was made from
    uint32_t version = 0;                 // of `code`; never used twice
    CodeMap code;
  };

  const Process& process(pid_t pid, const model::AddressSpace& space);
  void continue_truncated(const RawStack& raw, const Process& process, Walk& walk);
  void continue_on_other_stack(const RawStack& raw, const Process& process, Walk& walk);
  void continue_interrupted(const RawStack& raw, const Process& process, Walk& walk);
  bool continue_by_chain(const RawStack& raw, const CodeMap& code, Walk& walk);
  void take_chain(std::span<const uint64_t> chain, const CodeMap& code, Walk& walk);
  const UserStack& counted(const UserStack& stack);

  TableStore store_;
  BuildTable build_;
  std::vector<std::shared_ptr<const Table>> tables_;  // by module id
  std::vector<bool> prepared_;                        // by module id
  uint64_t tables_version_ = 1;
  std::unordered_map<pid_t, Process> processes_;
  pid_t last_pid_ = -1;  // samples come in runs of one process
  Process* last_process_ = nullptr;
  uint32_t next_version_ = 1;
  std::unique_ptr<WalkScratch> scratch_ = std::make_unique<WalkScratch>();
  WalkCache walks_;
  UnwindStats stats_;
};

void TableUnwinder::prepare(pid_t pid, const model::Mapping& mapping, const model::Module& module) {
  size_t id = module.id.value;
  if (id < prepared_.size() && prepared_[id]) return;
  std::shared_ptr<const Table> table;
  if (module.kind == model::ModuleKind::vdso) {
    table = load_vdso(store_);
  } else if (module.kind == model::ModuleKind::elf) {
    auto file = os::open_module_file(pid, mapping.start, mapping.end, module.path, module.build_id);
    if (!file) return;  // another process may have it
    auto identity = FileIdentity::of(file->fd.get(), file->build_id);
    if (!identity) return;
    table = store_.get(*identity, [&] { return build_(file->fd.get(), file->build_id); });
  }
  if (id >= prepared_.size()) {
    prepared_.resize(id + 1);
    tables_.resize(id + 1);
  }
  prepared_[id] = true;
  tables_[id] = std::move(table);
  ++tables_version_;
}

const TableUnwinder::Process& TableUnwinder::process(pid_t pid, const model::AddressSpace& space) {
  if (pid != last_pid_ || !last_process_) {
    if (processes_.size() >= kMaxProcesses && !processes_.contains(pid)) processes_.clear();
    last_process_ = &processes_[pid];
    last_pid_ = pid;
  }
  Process& p = *last_process_;
  if (p.space == &space && p.generation == space.generation() && p.tables == tables_version_) {
    return p;
  }
  p.space = &space;
  p.generation = space.generation();
  p.tables = tables_version_;
  p.version = next_version_++;
  p.code = CodeMap(space, [&](model::ModuleId id) { return table_of(id); });
  return p;
}

const UserStack& TableUnwinder::unwind(const RawStack& raw, const model::AddressSpace& space) {
  const Process& p = process(raw.pid, space);
  if (const Walk* known = walks_.find(raw, p.version)) {
    ++stats_.cache_hits;
    return counted(known->stack);
  }
  Walk& walk = walks_.victim(raw.tid);
  Walker<Arch>(raw, p.code, p.version, *scratch_, walk).run();
  if (walk.stack.end != StackEnd::complete)
    continue_truncated(raw, p, walk);
  else if (walk.switched_stacks && !raw.fp_chain.empty())
    continue_on_other_stack(raw, p, walk);
  walks_.stored(raw.tid, walk, p.version);
  return counted(walk.stack);
}

void TableUnwinder::continue_truncated(const RawStack& raw, const Process& p, Walk& walk) {
  if (walk.stack.frames.empty()) return take_chain(raw.fp_chain, p.code, walk);
  if (walk.stack.end == StackEnd::other_stack) return continue_interrupted(raw, p, walk);
  if (walk.stack.end != StackEnd::copy_too_short && walk.stack.end != StackEnd::bad_memory) return;
  if (walks_.join(raw.tid, walk, p.version)) return;
  continue_by_chain(raw, p.code, walk);
}

// Behind a signal's handler the kernel's chain goes on at what the interrupted code's frame pointer
// shows: its caller, when the rule for that code is that frame. (The interrupted code itself is not
// in the chain.)
void TableUnwinder::continue_interrupted(const RawStack& raw, const Process& p, Walk& walk) {
  if (walks_.join_interrupted(raw.tid, walk, p.version)) return;
  const auto& frames = walk.stack.frames;
  size_t last = frames.size() - 1;
  auto same_pc = [](const UserFrame& frame, uint64_t pc) { return frame.pc == pc; };
  if (raw.fp_chain.size() <= last ||
      !std::equal(frames.begin(), frames.end() - 1, raw.fp_chain.begin(), same_pc) ||
      row_at(p.code, frames[last].pc).rule_bits() != Row::pack(RowType::fp, 1, 2)) {
    return;
  }
  take_chain(raw.fp_chain.subspan(last), p.code, walk);
}

// The copy holds one stack only; the kernel's chain may lead back to the one that was switched
// from. What it finds counts only when it ends in a root.
void TableUnwinder::continue_on_other_stack(const RawStack& raw, const Process& p, Walk& walk) {
  size_t frames = walk.stack.frames.size();
  auto sps = walk.sps;
  bool used_frame_pointers = walk.stack.used_frame_pointers;
  if (continue_by_chain(raw, p.code, walk) && walk.stack.end == StackEnd::complete) return;
  walk.stack.frames.resize(frames);
  walk.stack.end = StackEnd::complete;
  walk.stack.used_frame_pointers = used_frame_pointers;
  walk.sps = std::move(sps);
  walk.is_exact = false;
}

// The kernel's chain goes on where ours ended, when it is certain where that is: it has the same
// frames from the leaf on, or our last frame appears in it exactly once.
bool TableUnwinder::continue_by_chain(const RawStack& raw, const CodeMap& code, Walk& walk) {
  const auto& frames = walk.stack.frames;
  auto chain = raw.fp_chain;
  size_t last = frames.size() - 1;
  size_t at = chain.size();
  auto same_pc = [](const UserFrame& frame, uint64_t pc) { return frame.pc == pc; };
  if (chain.size() > last && std::equal(frames.begin(), frames.end(), chain.begin(), same_pc)) {
    at = last;
  } else if (std::ranges::count(chain, frames[last].pc) == 1) {
    at = static_cast<size_t>(std::ranges::find(chain, frames[last].pc) - chain.begin());
  }
  if (at + 1 >= chain.size()) return false;
  take_chain(chain.subspan(at + 1), code, walk);
  return true;
}

void TableUnwinder::take_chain(std::span<const uint64_t> chain, const CodeMap& code, Walk& walk) {
  for (uint64_t pc : chain) {
    if (pc >= Arch::kUserEnd) continue;  // the kernel's markers
    if (pc == 0) break;
    if (walk.stack.frames.size() >= kMaxFrames) {
      walk.stack.end = StackEnd::too_deep;
      return;
    }
    walk.stack.used_frame_pointers = true;
    walk.stack.end = StackEnd::frame_pointers;
    walk.stack.frames.push_back({pc, !walk.stack.frames.empty()});
  }
  walk.is_exact = false;
  walk.sps.clear();  // the chain has none, so nothing can be joined to this walk
  if (!walk.stack.used_frame_pointers || walk.stack.frames.empty()) return;
  const UserFrame& root = walk.stack.frames.back();
  if (row_at(code, root.pc - root.is_return_address).type() == RowType::end)
    walk.stack.end = StackEnd::complete;
}

const UserStack& TableUnwinder::counted(const UserStack& stack) {
  ++stats_.stacks;
  stats_.complete += stack.end == StackEnd::complete;
  stats_.joined += stack.joined;
  ++stats_.ended[static_cast<size_t>(stack.end)];
  return stack;
}

}  // namespace

std::unique_ptr<Unwinder> Unwinder::create(const std::string& cache_dir, BuildTable build) {
  return std::make_unique<TableUnwinder>(cache_dir, std::move(build));
}

}  // namespace assay::unwind
