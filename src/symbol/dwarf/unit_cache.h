// UnitCache: what was read of a module's debug information, kept on disk by build id.
//
// In: unit tables as they are built. Out: the same tables in a later run, without reading the debug
// information again. A file is valid for one build id and one fingerprint of the debug file; its
// directory and each of its parts carry a checksum. A file that is of another version, damaged or
// foreign is ignored and replaced. Files are written whole and renamed into place, so that a reader
// never sees half of one and two writers do not mix. Layout: header, directory of parts {kind or
// unit, offset, size, checksum}, parts; a part is zstd-compressed. Written for the machine that
// reads it: another byte order fails the magic. Threads: none; guarded by the module's lock.
// Failures: a cache that cannot be read or written is no cache; nothing else fails.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <zstd.h>

#include "base/unique_fd.h"
#include "symbol/dwarf/unit_table.h"

namespace assay::symbol {

// Which unit holds the code from start to end.
struct UnitRange {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t unit = 0;
  uint32_t reserved = 0;
};

class UnitCache {
 public:
  // An empty `folder` or build id: a cache in memory only.
  UnitCache(const std::string& folder, const std::string& build_id, uint64_t fingerprint);
  ~UnitCache() { save(); }
  UnitCache(const UnitCache&) = delete;
  UnitCache& operator=(const UnitCache&) = delete;

  bool on_disk() const { return !path_.empty(); }
  bool has_index() const { return parts_.contains(kIndexKey); }
  bool has_unit(uint32_t number) const { return parts_.contains(number); }
  std::optional<std::vector<UnitRange>> index();
  std::optional<UnitTable> unit(uint32_t number);
  void keep_index(const std::vector<UnitRange>& index);
  void keep_unit(uint32_t number, const UnitTable& table);
  // Writes what was added since it was opened; also done by the destructor.
  void save();

  const std::string& path() const { return path_; }

 private:
  struct Part {
    uint64_t offset = 0;  // in the file; unused when bytes are held
    uint64_t size = 0;
    uint64_t checksum = 0;
    std::string bytes;  // added in this run
  };
  void open();
  std::optional<std::string> read(const Part& part) const;
  std::optional<std::string> load(uint64_t key);
  ZSTD_DCtx* unpacker();
  void add(uint64_t key, std::string_view bytes);

  static constexpr uint64_t kIndexKey = uint64_t{1} << 32;

  std::string folder_;
  std::string path_;
  std::string build_id_;
  uint64_t fingerprint_ = 0;
  UniqueFd fd_;
  std::unordered_map<uint64_t, Part> parts_;  // by unit number or kIndexKey
  bool changed_ = false;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> unpacker_{nullptr, ::ZSTD_freeDCtx};
};

// A table as bytes and back; nothing when the bytes are no table whose references all hold.
std::string encode_unit_table(const UnitTable& table);
std::optional<UnitTable> decode_unit_table(std::string_view bytes);
uint64_t checksum_bytes(std::string_view bytes);

}  // namespace assay::symbol
