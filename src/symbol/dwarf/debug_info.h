// DebugInfo: functions, lines and inlined frames of one module from its DWARF, read as far as
// asked.
//
// In: the file with .debug_info, and where to look for its parts. Out: locations of an address. The
// first question builds an index of which unit holds which addresses, from the units' headers
// alone; each unit is read whole when its first address is asked for, and kept as a flat UnitTable.
// Threads: none; guarded by the module's lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/location.h"
#include "symbol/elf/debug_files.h"
#include "symbol/dwarf/dwarf_file.h"
#include "symbol/dwarf/unit_table.h"
#include "symbol/dwarf/unit_cache.h"

namespace assay::symbol {

class DebugInfo {
 public:
  // `file` lives as long as this; `path` is where it was found; `code` are the module's code
  // ranges.
  DebugInfo(ElfFile& file, std::string path, std::vector<PcRange> code, DebugFiles& files,
            const std::string& cache_dir, const std::string& build_id);

  // Appends the locations at `address`; nothing when no unit knows it.
  void find(uint64_t address, bool inlines, std::vector<model::Location>& out);

  // What find() has to read before its first answer, about.
  uint64_t effort_bytes() const;

  // Writes what was learnt to the cache on disk.
  void save() { cache_.save(); }

 private:
  static constexpr uint32_t kNoUnit = UINT32_MAX;
  struct Held {
    UnitTable table;
    uint64_t bytes = 0;
    uint64_t last_use = 0;
  };
  DwarfFile& dwarf();
  void make_index();
  uint32_t unit_of(uint64_t address);
  UnitTable& table_of(uint32_t unit);
  UnitTable build(uint32_t unit);
  void evict_beyond_limit(uint32_t keep);
  std::vector<PcRange> ranges_of(DwarfUnit& unit);
  std::unique_ptr<DwarfUnit> split_part(DwarfUnit& skeleton, bool& missing);
  bool is_code(uint64_t address) const;

  DebugFiles& files_;
  const std::string path_;
  const std::vector<PcRange> code_;
  ElfFile& file_;
  std::unique_ptr<DwarfFile> dwarf_;  // made when the cache does not answer
  bool alt_looked_for_ = false;
  bool indexed_ = false;
  std::vector<UnitRange> index_;   // sorted by start
  std::vector<uint64_t> max_end_;  // of index_[0..i]
  UnitCache cache_;
  std::unordered_map<uint32_t, Held> tables_;
  uint64_t table_bytes_ = 0;
  uint64_t uses_ = 0;
  bool dwp_looked_for_ = false;
  std::unique_ptr<DwarfFile> dwp_;
  std::unique_ptr<DwarfFile> dwo_;  // the one read last
};

}  // namespace assay::symbol
