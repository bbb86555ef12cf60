#include "unwind/table/table.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>

namespace assay::unwind {

namespace {

constexpr uint64_t kMaxTableBytes = uint64_t{1} << 31;

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 29;
}

// The array of `count` items at `offset`, when it lies inside and is aligned.
template <class T>
bool place(std::span<const std::byte> bytes, uint64_t offset, uint64_t count, const T*& out) {
  if (offset % 8 != 0 || offset > bytes.size() || count > (bytes.size() - offset) / sizeof(T)) {
    return false;
  }
  out = reinterpret_cast<const T*>(bytes.data() + offset);
  return true;
}

bool index_is_sound(const TableView& view) {
  const TableHeader& h = *view.header;
  if (h.text_bytes > uint64_t{h.page_count} * kPageBytes) return false;
  for (uint32_t page = 0; page < h.page_count; ++page) {
    if (view.index[page] > view.index[page + 1]) return false;
  }
  return view.index[h.page_count] == h.row_count;
}

bool segments_are_sound(const TableView& view) {
  for (uint32_t i = 0; i < view.header->segment_count; ++i) {
    const Segment& s = view.segments[i];
    if (s.text > view.header->text_bytes || s.bytes > view.header->text_bytes - s.text)
      return false;
    if (s.file_offset > UINT64_MAX - s.bytes || s.vaddr > UINT64_MAX - s.bytes) return false;
  }
  return true;
}

bool spans_are_sound(const TableView& view) {
  const TableHeader& h = *view.header;
  auto inside = [&](const RuleSpan& s) {
    return s.first <= h.reg_rule_count && s.count <= h.reg_rule_count - s.first;
  };
  auto expression_inside = [&](int32_t at, uint16_t bytes) {
    return at >= 0 && uint64_t(at) + bytes <= h.expression_bytes;
  };
  for (uint32_t i = 0; i < h.saved_set_count; ++i) {
    if (!inside(view.saved_sets[i])) return false;
  }
  for (uint32_t i = 0; i < h.full_rule_count; ++i) {
    const FullRule& f = view.full_rules[i];
    if (!inside(f.regs)) return false;
    if (f.cfa_is_expression && !expression_inside(f.cfa_value, f.expression_bytes)) return false;
  }
  for (uint32_t i = 0; i < h.reg_rule_count; ++i) {
    const RegRule& r = view.reg_rules[i];
    bool is_expression = r.kind == RegKind::at_expression || r.kind == RegKind::is_expression;
    if (is_expression && !expression_inside(r.value, r.expression_bytes)) return false;
  }
  return true;
}

}  // namespace

uint64_t table_checksum(std::span<const std::byte> table) {
  constexpr size_t kAt = offsetof(TableHeader, checksum);
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t words = table.size() / 8;
  for (size_t i = 0; i < words; ++i) {
    uint64_t word = 0;
    if (i * 8 != kAt) std::memcpy(&word, table.data() + i * 8, 8);
    lanes[i % 4] = mix(lanes[i % 4], word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, table.data() + words * 8, table.size() % 8);
  uint64_t hash = mix(table.size(), tail);
  for (uint64_t lane : lanes) hash = mix(hash, lane);
  return hash;
}

Result<TableView> validate_table(std::span<const std::byte> bytes, bool check_sum) {
  if (bytes.size() < sizeof(TableHeader)) return fail("an unwind table is cut short");
  TableView view;
  view.header = reinterpret_cast<const TableHeader*>(bytes.data());
  const TableHeader& h = *view.header;
  if (std::memcmp(h.magic, kTableMagic, sizeof kTableMagic) != 0 || h.version != kTableVersion ||
      h.header_bytes != sizeof(TableHeader)) {
    return fail("not an unwind table of version {}", kTableVersion);
  }
  if (h.total_bytes != bytes.size()) return fail("an unwind table is cut short");
  if (check_sum && h.checksum != table_checksum(bytes)) return fail("an unwind table is damaged");
  bool placed = place(bytes, h.segments_at, h.segment_count, view.segments) &&
                place(bytes, h.index_at, uint64_t{h.page_count} + 1, view.index) &&
                place(bytes, h.rows_at, h.row_count, view.rows) &&
                place(bytes, h.saved_at, h.row_count, view.saved) &&
                place(bytes, h.saved_sets_at, h.saved_set_count, view.saved_sets) &&
                place(bytes, h.full_rules_at, h.full_rule_count, view.full_rules) &&
                place(bytes, h.reg_rules_at, h.reg_rule_count, view.reg_rules) &&
                place(bytes, h.expressions_at, h.expression_bytes, view.expressions);
  if (!placed || h.build_id[sizeof h.build_id - 1] != 0 || !index_is_sound(view) ||
      !segments_are_sound(view) || !spans_are_sound(view)) {
    return fail("an unwind table is inconsistent");
  }
  return view;
}

Result<std::shared_ptr<const Table>> Table::from_bytes(std::vector<std::byte> bytes) {
  std::shared_ptr<Table> table(new Table);
  table->owned_ = std::move(bytes);
  table->bytes_ = table->owned_;
  auto view = validate_table(table->bytes_, false);
  if (!view) return std::unexpected(view.error());
  table->view_ = *view;
  return table;
}

Result<std::shared_ptr<const Table>> Table::from_file(UniqueFd fd, const std::string& path,
                                                      std::string_view build_id) {
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot stat {}", path);
  // Only files of this user (or root) are mapped: another user could cut the file while we read.
  if (!S_ISREG(status.st_mode) || (status.st_uid != ::geteuid() && status.st_uid != 0) ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail("{} is not a file of ours", path);
  }
  auto size = static_cast<uint64_t>(status.st_size);
  if (size < sizeof(TableHeader) || size > kMaxTableBytes)
    return fail("{} is no unwind table", path);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) return fail_errno("cannot map {}", path);
  std::shared_ptr<Table> table(new Table);
  table->mapped_ = at;
  table->bytes_ = {static_cast<const std::byte*>(at), size};
  auto view = validate_table(table->bytes_, true);
  if (!view) return std::unexpected(view.error());
  table->view_ = *view;
  if (table->build_id() != build_id) return fail("{} is of another build", path);
  return table;
}

Table::~Table() {
  if (mapped_) ::munmap(mapped_, bytes_.size());
}

bool Table::to_text(uint64_t file_offset, uint64_t& text) const {
  for (uint32_t i = 0; i < view_.header->segment_count; ++i) {
    const Segment& s = view_.segments[i];
    if (file_offset < s.file_offset || file_offset - s.file_offset >= s.bytes) continue;
    text = file_offset - s.file_offset + s.text;
    return true;
  }
  return false;
}

}  // namespace assay::unwind
