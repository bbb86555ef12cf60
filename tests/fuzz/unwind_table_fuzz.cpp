// Fuzz entry of the unwind table builder: any bytes as an ELF file, and as the table itself.
//
// A hostile file may make nonsense rows, never a table that fails its own validation; a hostile
// table may make nonsense frames, never a read outside it (a sanitizer build sees that).
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "unwind/arch_x86_64.h"
#include "unwind/table/table_builder.h"
#include "unwind/testing/synthetic_stack.h"
#include "unwind/walker.h"

namespace {

using namespace assay;
using namespace assay::unwind;

// Looks rows up and walks stacks over the table, wherever its segments say they are.
void use(std::shared_ptr<const Table> table) {
  const TableView& view = table->view();
  uint64_t span = uint64_t{view.header->page_count} * kPageBytes;
  for (uint64_t text = 0; text < span && text < 4096; text += 3) view.find(text);
  model::AddressSpace space;
  space.map({0x401000, 0x403000, 0x1000, {0}});
  CodeMap code(space, [&](model::ModuleId) { return table; });
  static WalkScratch scratch;
  static uint32_t version = 0;
  Walk walk;
  for (uint64_t pc = 0x401000; pc < 0x401200; pc += 5) {
    unwind::testing::SyntheticStack stack(pc, 48);
    for (size_t i = 0; i < 48; ++i) {
      stack.word(i, i % 3 == 2 ? stack.address(i + 2) : 0x401000 + i * 7);
    }
    for (int reg = 0; reg < 16; ++reg) {
      if (reg != model::kRegRsp) stack.reg(reg, stack.address(static_cast<size_t>(reg)));
    }
    RawStack raw = stack.raw();
    Walker<X86_64>(raw, code, ++version, scratch, walk).run();
    if (walk.stack.frames.empty() || walk.stack.frames.size() > kMaxFrames) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                               reinterpret_cast<const std::byte*>(data) + size);
  if (auto image = unwind::testing::open_elf(bytes)) {
    if (auto built = build_table(**image, "00")) {
      auto table = Table::from_bytes(std::move(*built));
      if (!table) std::abort();
      use(*table);
    }
  }
  if (auto table = Table::from_bytes(std::move(bytes))) use(*table);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> corpus;
  auto keep = [&](std::span<const std::byte> bytes) {
    auto begin = reinterpret_cast<const uint8_t*>(bytes.data());
    corpus.emplace_back(begin, begin + bytes.size());
  };
  auto elf = unwind::testing::SyntheticCode::elf();
  // Mutations should meet headers and call-frame information, not padding: the text moves to 0x200.
  auto small = elf;
  small.erase(small.begin() + 0x200, small.begin() + 0x1000);
  auto shift = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, small.data() + at, 8);
    value -= 0xe00;
    std::memcpy(small.data() + at, &value, 8);
  };
  shift(offsetof(Elf64_Ehdr, e_shoff));
  shift(sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_offset));
  Elf64_Ehdr header;
  std::memcpy(&header, small.data(), sizeof header);
  for (size_t i = 1; i < header.e_shnum; ++i) {
    shift(header.e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset));
  }
  keep(small);
  auto image = unwind::testing::open_elf(small);
  auto table = image ? build_table(**image, "00") : fail("no corpus");
  if (!table) std::abort();
  keep(*table);
  return corpus;
}
