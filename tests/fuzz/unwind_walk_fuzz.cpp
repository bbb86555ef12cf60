// Fuzz entry of the unwinder: any registers, stack copy and call chain over a sound table.
//
// Input: 17 registers, 4 bytes that say which are known, the copy. Nothing
// may crash, run away or read outside the copy; what the cache answers must be what a walk finds.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "unwind/arch_x86_64.h"
#include "unwind/table/table_builder.h"
#include "unwind/testing/synthetic_stack.h"
#include "unwind/walk_cache.h"
#include "unwind/walker.h"

namespace {

using namespace assay;
using namespace assay::unwind;
using unwind::testing::SyntheticCode;
using unwind::testing::SyntheticStack;

struct Fixture {
  Fixture() {
    auto elf = SyntheticCode::elf();
    auto bytes = build_table(**unwind::testing::open_elf(elf), "");
    table = *Table::from_bytes(std::move(*bytes));
    space.map(SyntheticCode::mapping());
    code = CodeMap(space, [&](model::ModuleId) { return table; });
  }
  std::shared_ptr<const Table> table;
  model::AddressSpace space;
  CodeMap code;
  WalkScratch scratch;
  WalkCache cache;
};

bool same(const UserStack& a, const UserStack& b) {
  if (a.end != b.end || a.frames.size() != b.frames.size()) return false;
  for (size_t i = 0; i < a.frames.size(); ++i) {
    if (a.frames[i].pc != b.frames[i].pc) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& fixture = *new Fixture;
  RawStack raw;
  raw.pid = raw.tid = 1;
  size_t registers = sizeof raw.registers.value;
  if (size < registers + 4) return 0;
  std::memcpy(raw.registers.value.data(), data, registers);
  std::memcpy(&raw.registers.known, data + registers, 4);
  raw.registers.known &= (1u << model::kRegCount) - 1;
  // Exactly as large as it claims, so that a sanitizer sees a read beyond it.
  std::vector<std::byte> copy(size - registers - 4);
  if (!copy.empty()) std::memcpy(copy.data(), data + registers + 4, copy.size());
  raw.copy = copy;

  const Walk* cached = fixture.cache.find(raw, 1);
  UserStack answer = cached ? cached->stack : UserStack{};
  Walk& walk = fixture.cache.victim(1);
  Walker<X86_64>(raw, fixture.code, 1, fixture.scratch, walk).run();
  if (walk.stack.frames.size() > kMaxFrames) std::abort();
  if (cached && !same(answer, walk.stack)) std::abort();
  if (!walk.stack.frames.empty() && walk.stack.end != model::StackEnd::complete) {
    fixture.cache.join(1, walk, 1);
  }
  fixture.cache.stored(1, walk, 1);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> corpus;
  for (int rule = 0; rule < static_cast<int>(unwind::testing::Rule::count); ++rule) {
    SyntheticStack s(SyntheticCode::at(static_cast<unwind::testing::Rule>(rule)), 64);
    for (size_t i = 0; i < 64; ++i) {
      auto next = static_cast<unwind::testing::Rule>(
          (static_cast<size_t>(rule) + i) % static_cast<size_t>(unwind::testing::Rule::count));
      s.word(i, i % 2 ? SyntheticCode::at(next) : s.address(i + 4));
    }
    s.reg(model::kRegRbp, s.address(4)).reg(model::kRegRbx, s.address(2));
    RawStack raw = s.raw();
    std::vector<uint8_t> bytes(sizeof raw.registers.value + 4 + raw.copy.size());
    std::memcpy(bytes.data(), raw.registers.value.data(), sizeof raw.registers.value);
    std::memcpy(bytes.data() + sizeof raw.registers.value, &raw.registers.known, 4);
    std::memcpy(bytes.data() + sizeof raw.registers.value + 4, raw.copy.data(), raw.copy.size());
    corpus.push_back(std::move(bytes));
  }
  return corpus;
}
