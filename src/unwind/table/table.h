// Table: one module's unwind table, owned, validated and read-only.
//
// In: bytes that build_table() made, or a file of the cache, which is mapped. Out: a TableView
// whose lookups stay inside the bytes whatever they hold: the index is checked here, numbers in
// rows are checked where they are used. Threads: const, shared freely. Failures: an Error for bytes
// that are not a table of this version and build id, or are damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "unwind/table/table_format.h"

namespace assay::unwind {

uint64_t table_checksum(std::span<const std::byte> table);

// Checks every offset, count and the index; with `check_sum` also the checksum.
Result<TableView> validate_table(std::span<const std::byte> bytes, bool check_sum);

class Table {
 public:
  static Result<std::shared_ptr<const Table>> from_bytes(std::vector<std::byte> bytes);
  // Maps a file of the cache, which `path` names. An Error unless the table in it has this build id:
  // a second check, since TableStore finds the file by what the kernel says of the module.
  static Result<std::shared_ptr<const Table>> from_file(UniqueFd fd, const std::string& path,
                                                        std::string_view build_id);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const TableView& view() const { return view_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_go() const { return view_.header->flags & kTableGo; }
  std::string_view build_id() const { return view_.header->build_id; }

  // Text address of a file offset; false when it lies in no executable segment.
  bool to_text(uint64_t file_offset, uint64_t& text) const;

 private:
  Table() = default;
  std::span<const std::byte> bytes_;
  std::vector<std::byte> owned_;
  void* mapped_ = nullptr;
  TableView view_;
};

}  // namespace assay::unwind
