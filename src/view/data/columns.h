// Columns: a table as bytes that the page reads without parsing text.
//
// Layout: "ASC1", uint32 little endian length of the header, the header (JSON: kind, scalars,
// columns as [name, encoding, count, bytes]), then the columns one after another. Encodings: "u"
// LEB128 varints; "d" zigzag varints of the difference to the previous value; "s" strings, each a
// varint length and its bytes (whatever the target had: may be no UTF-8). Columns of one table may
// differ in length. Names and kinds come from this program, never from a run. Not thread-safe;
// never fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::view {

class Columns {
 public:
  explicit Columns(std::string_view kind) : kind_(kind) {}

  void scalar(std::string_view name, int64_t value);
  void add(std::string_view name, std::span<const uint64_t> values);
  void add(std::string_view name, std::span<const uint32_t> values);
  void add_deltas(std::string_view name, std::span<const int64_t> values);
  void add_strings(std::string_view name, std::span<const std::string_view> values);
  std::string finish() const;

 private:
  void close(std::string_view name, char encoding, size_t count, size_t bytes_before);
  template <class Values, class Encode>
  void put_all(const Values& values, const Encode& encode);

  std::string kind_;
  std::string scalars_;
  std::string header_;
  std::string bytes_;
};

}  // namespace assay::view
