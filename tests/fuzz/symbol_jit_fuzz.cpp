// Any bytes as a perf map, as a jitdump, as kallsyms and as a cached unit table.
#include <string_view>

#include "symbol/jit/jit_code.h"
#include "symbol/kernel/kernel_symbols.h"
#include "symbol/dwarf/unit_cache.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string small_dump() {
  std::string out;
  for (uint32_t word : {0x4A695444u, 1u, 40u, 62u, 0u, 7u, 0u, 0u, 0u, 0u}) put(out, word);
  std::string body;
  for (uint64_t word : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x1000}, uint64_t{4}, uint64_t{1}})
    put(body, word);
  body += std::string("name\0\x90\x90\x90\x90", 9);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, static_cast<uint32_t>(16 + body.size()));
  put<uint64_t>(out, 1);
  return out + body;
}

std::string small_table() {
  assay::symbol::UnitTable table;
  table.pool = "file.cname";
  table.files = {{0, 0}, {0, 6}};
  table.names = {{{6, 4}, 0}};
  table.rows = {{0x10, 1, 5}, {0x20, assay::symbol::LineRow::kEnd, 0}};
  table.ranges = {{0x10, 0x20}};
  table.nodes = {{0, 3, 0, 0, 0, 1, 1, 0}};
  table.spans = {{0x10, 0x20, 0, 0}};
  return assay::symbol::encode_unit_table(table);
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> out;
  for (const std::string& seed :
       {std::string("1000 20 name\n2000 10 JS:*f /a.js:1:2\n"), small_dump(), small_table(),
        std::string("ffffffff81000000 T _text\nffffffffc0000000 t f\t[mod]\n")}) {
    out.emplace_back(seed.begin(), seed.end());
  }
  return out;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::symbol;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  JitCode from_map, from_dump;
  JitDumpReader reader;
  read_perf_map(bytes, from_map);
  size_t used = 0;
  for (size_t have : {size / 2, size})
    used += reader.read(bytes.substr(used, have - used), from_dump);
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
