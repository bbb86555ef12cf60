#include "evidence/bpf_tables.h"

#include "unwind/code_map.h"

namespace assay::evidence {
namespace {

// The programs read the rows as they are.
static_assert(unwind::kPageBytes == 256 && sizeof(unwind::Row) == sizeof(uint32_t));
static_assert(unwind::kNoCfi == 6u << 8 && unwind::kMaxFpSlot == 29);

}  // namespace

BpfTables::BpfTables(capture::BpfPrograms& programs, AddressSpaces& spaces,
                     unwind::Unwinder& unwinder)
    : programs_(programs),
      spaces_(spaces),
      unwinder_(unwinder),
      pool_([this](uint32_t number) { return programs_.new_chunk(number); }),
      lists_(programs.ranges()) {}

void BpfTables::exited(pid_t pid, TimeNs now) {
  changed_.erase(pid);
  lists_.forget(pid, now);
}

bool BpfTables::watch(pid_t pid, TimeNs now) {
  changed_.erase(pid);
  return programs_.add_process(pid, code_of(pid, now));
}

void BpfTables::refresh(TimeNs now) {
  for (pid_t pid : changed_) {
    if (spaces_.knows(pid)) programs_.update_process(pid, code_of(pid, now));
  }
  changed_.clear();
}

capture::TablePool::Place BpfTables::place_of(const unwind::TableView& table) {
  auto [it, added] = places_.try_emplace(table.header);
  if (!added) return it->second;
  auto place = pool_.add({table.index, size_t{table.header->page_count} + 1},
                         {&table.rows[0].bits, table.header->row_count}, unwind::kNoCfi);
  if (place)
    it->second = *place;
  else
    ++missing_;
  return it->second;
}

uint64_t BpfTables::code_of(pid_t pid, TimeNs now) {
  unwind::CodeMap code(spaces_.of(pid),
                       [this](model::ModuleId module) { return unwinder_.table_of(module); });
  std::vector<capture::bpf::range> ranges;
  for (const unwind::CodeRange& from : code.ranges()) {
    capture::bpf::range range{from.begin, from.end, from.to_text, 0, 0};
    if (from.table != nullptr) {
      auto place = place_of(*from.table);
      range.index_at = place.index_at;
      range.rows_at = place.rows_at;
    }
    bool joins = !ranges.empty() && range.index_at == 0 && ranges.back().index_at == 0 &&
                 ranges.back().end == range.begin;
    if (joins)
      ranges.back().end = range.end;
    else
      ranges.push_back(range);
  }
  if (ranges.empty()) return 0;
  return lists_.set(pid, ranges, now);
}

}  // namespace assay::evidence
