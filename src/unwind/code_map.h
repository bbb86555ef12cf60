// CodeMap: one process's executable ranges with their unwind tables, flat, for fast lookup.
//
// In: an AddressSpace and the tables of its modules. Out: for a program counter its range and the
// row number's base. Keeps the tables it points to alive. Threads: one thread (lookups remember the
// last).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/address_space.h"
#include "unwind/table/table.h"

namespace assay::unwind {

struct CodeRange {
  uint64_t begin = 0, end = 0;
  uint64_t to_text = 0;              // added (modulo 2^64) to an address gives its text address
  const TableView* table = nullptr;  // null: no table for this range
  bool is_go = false;
};

class CodeMap {
 public:
  using TableOf = std::function<std::shared_ptr<const Table>(model::ModuleId)>;

  CodeMap() = default;
  CodeMap(const model::AddressSpace& space, const TableOf& table_of);

  const CodeRange* find(uint64_t address) const {
    const CodeRange& last = ranges_[last_];
    if (address - last.begin < last.end - last.begin) return &last;
    return search(address);
  }
  // All ranges, sorted.
  std::span<const CodeRange> ranges() const { return std::span(ranges_).subspan(1); }

 private:
  void add(const model::Mapping& mapping, const std::shared_ptr<const Table>& table);
  const CodeRange* search(uint64_t address) const;

  std::vector<CodeRange> ranges_ = std::vector<CodeRange>(1);  // sorted; the first is empty
  std::vector<std::shared_ptr<const Table>> tables_;
  mutable size_t last_ = 0;
};

}  // namespace assay::unwind
