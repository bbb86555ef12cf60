// What Assay and its reader process say to one another.
//
// Assay asks, the reader answers; while it works on an answer the reader may ask for files, which
// Assay opens or refuses. So at any moment exactly one side speaks. docs/security.md says which
// side is trusted with what.
#pragma once

#include <cstdint>
#include <vector>

#include "base/wire.h"
#include "model/location.h"
#include "os/process/binary_facts.h"
#include "symbol/symbolizer.h"

namespace assay::reader {

enum class Kind : uint8_t {
  // Questions to the reader.
  add_module = 1,    // id, kind, path, build id, pid, opened path, problem; the file as descriptor
                     // where there is one
  resolve = 2,       // module, addresses → locations of each
  resolve_data = 3,  // module, address → text
  status = 4,        // module → status
  build_table = 5,  // build id; the file as descriptor → the bytes of an unwind table, or why not
  build_id = 6,      // the file as descriptor → what was wrong, or the build id
  binary_facts = 7,  // the same → what was wrong, or how the program was built
  // Answers of the reader.
  answer = 16,
  // What the reader asks back while it works.
  open_file = 32,       // pid, path, on host → descriptor
  open_perf_map = 33,   // pid → descriptor, path
  open_jit_dump = 34,   // pid → descriptor, path
  ask_debuginfod = 35,  // build id → descriptor, path
  // The answer to that: problem (empty: none), path; the file as descriptor.
  file = 48,
};

inline void write(WireWriter& out, const std::vector<model::Location>& locations) {
  out.u32(static_cast<uint32_t>(locations.size()));
  for (const model::Location& one : locations) {
    out.text(one.function).text(one.system_name).text(one.file);
    out.u32(one.line).u32(one.function_line).u8(one.inlined ? 1 : 0);
  }
}

inline std::vector<model::Location> read_locations(WireReader& in) {
  constexpr size_t kLeastBytes = 3 * 4 + 2 * 4 + 1;
  std::vector<model::Location> locations(in.count(kLeastBytes));
  for (model::Location& one : locations) {
    one.function = in.text();
    one.system_name = in.text();
    one.file = in.text();
    one.line = in.u32();
    one.function_line = in.u32();
    one.inlined = in.u8() != 0;
  }
  return locations;
}

inline void write(WireWriter& out, const symbol::ModuleStatus& status) {
  out.u8(status.opened)
      .u8(status.has_symbols)
      .u8(status.has_lines)
      .text(status.source)
      .text(status.problem);
}

inline symbol::ModuleStatus read_status(WireReader& in) {
  symbol::ModuleStatus status;
  status.opened = in.u8() != 0;
  status.has_symbols = in.u8() != 0;
  status.has_lines = in.u8() != 0;
  status.source = in.text();
  status.problem = in.text();
  return status;
}

inline void write(WireWriter& out, const os::BinaryFacts& facts) {
  out.text(facts.build_id).u8(static_cast<uint8_t>(facts.linkage));
  for (bool yes : {facts.has_symtab, facts.has_dynsym, facts.has_debug_info, facts.has_debug_link,
                   facts.debug_containers})
    out.u8(yes ? 1 : 0);
  out.u32(facts.units_read).u32(facts.units_optimised).u32(facts.units_debug);
  out.text(facts.compiler).text(facts.flags);
  out.u8(static_cast<uint8_t>(facts.optimisation)).u8(static_cast<uint8_t>(facts.frame_pointers));
  out.text(facts.limit).u32(static_cast<uint32_t>(facts.sanitizers.size()));
  for (const std::string& name : facts.sanitizers) out.text(name);
}

// A number that none of the enumerators has is read as the first, which is "unknown".
template <class Enum>
Enum read_enumerator(WireReader& in, Enum last) {
  uint8_t value = in.u8();
  return value <= static_cast<uint8_t>(last) ? static_cast<Enum>(value) : Enum{};
}

inline os::BinaryFacts read_facts(WireReader& in) {
  os::BinaryFacts facts;
  facts.build_id = in.text();
  facts.linkage = read_enumerator(in, os::Linkage::shared);
  for (bool* yes : {&facts.has_symtab, &facts.has_dynsym, &facts.has_debug_info,
                    &facts.has_debug_link, &facts.debug_containers})
    *yes = in.u8() != 0;
  facts.units_read = in.u32();
  facts.units_optimised = in.u32();
  facts.units_debug = in.u32();
  facts.compiler = in.text();
  facts.flags = in.text();
  facts.optimisation = read_enumerator(in, os::Optimisation::debug);
  facts.frame_pointers = read_enumerator(in, os::FramePointers::omitted);
  facts.limit = in.text();
  facts.sanitizers.resize(in.count(sizeof(uint32_t)));
  for (std::string& name : facts.sanitizers) name = in.text();
  return facts;
}

}  // namespace assay::reader
