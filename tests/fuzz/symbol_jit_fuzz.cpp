// Any bytes as a perf map, as a jitdump, as kallsyms and as a cached unit table.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "symbol/jit_code.h"
#include "symbol/kernel_symbols.h"
#include "symbol/unit_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::symbol;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  JitCode from_map, from_dump;
  JitDumpReader reader;
  read_perf_map(bytes, from_map);
  size_t used = 0;
  for (size_t have : {size / 2, size}) used += reader.read(bytes.substr(used, have - used), from_dump);
  (void)from_map.find(0x1000);
  (void)from_dump.find(0x1000);
  KernelSymbol symbol;
  (void)KernelSymbols::parse(std::string(bytes)).find_code(0xffffffff81000000, symbol);
  if (auto table = decode_unit_table(bytes)) {
    std::vector<assay::model::Location> out;
    for (uint64_t at = 0; at < 64; ++at) table->find(at, true, out);
  }
  return 0;
}
