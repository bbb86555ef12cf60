#include "unwind/table/go_functions.h"

#include "base/byte_reader.h"

namespace assay::unwind {

namespace {

constexpr uint32_t kMagic18 = 0xfffffff0, kMagic20 = 0xfffffff1;
constexpr uint64_t kMaxFunctions = 1 << 22;
constexpr uint8_t kTopFrame = 1, kSpWrite = 2;  // runtime's abi.FuncFlag
constexpr size_t kDeltasAt = 16;                // of _func.pcsp

}  // namespace

GoFunctions GoFunctions::read(std::span<const std::byte> pclntab, uint64_t text_vaddr) {
  GoFunctions out;
  ByteReader in(pclntab);
  uint32_t magic = in.u32();
  uint16_t zero = in.u16();
  uint8_t quantum = in.u8(), pointer_bytes = in.u8();
  if ((magic != kMagic18 && magic != kMagic20) || zero != 0 || quantum == 0 || pointer_bytes != 8) {
    return out;
  }
  uint64_t count = in.u64();
  in.u64();  // files
  uint64_t text = in.u64();
  in.u64(), in.u64(), in.u64();  // names, units, files
  uint64_t deltas_at = in.u64(), table_at = in.u64();
  if (!in.ok() || count > kMaxFunctions || deltas_at > pclntab.size() ||
      table_at > pclntab.size()) {
    return out;
  }
  if (text == 0) text = text_vaddr;
  out.quantum_ = quantum;
  out.deltas_ = pclntab.subspan(deltas_at);
  auto table = pclntab.subspan(table_at);
  // Where a function's flags are: format 20 has one field more before them.
  const size_t flags_at = magic == kMagic20 ? 41 : 37;
  ByteReader entries(table);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t begin = entries.u32(), record = entries.u32();
    ByteReader next(table, entries.offset());
    uint64_t end = next.u32();
    if (!entries.ok() || !next.ok()) break;
    ByteReader deltas(table, record + kDeltasAt), flags(table, record + flags_at);
    Function f{text + begin, text + end, false, false, deltas.u32()};
    uint8_t flag = flags.u8();
    if (!deltas.ok() || !flags.ok() || begin >= end || text > UINT64_MAX - end) continue;
    f.is_top = flag & kTopFrame;
    f.switches_stacks = flag & kSpWrite;
    out.functions_.push_back(f);
  }
  return out;
}

// Pairs of (zigzag change of the value, change of the address in quanta), from the value −1; a
// change of 0 after the first ends the table. Offset 0 means that there is no table.
void GoFunctions::run(const Function& function,
                      const std::function<void(uint64_t, int64_t)>& row) const {
  if (function.deltas == 0 || function.deltas >= deltas_.size()) return row(function.begin, -1);
  ByteReader in(deltas_, function.deltas);
  uint64_t at = function.begin;
  int64_t value = -1;
  for (bool first = true; at < function.end; first = false) {
    uint64_t change = in.uleb(), step = in.uleb();
    if (!in.ok() || change > UINT32_MAX || step > UINT32_MAX || (change == 0 && !first)) {
      return row(at, -1);
    }
    value +=
        change & 1 ? -static_cast<int64_t>((change + 1) >> 1) : static_cast<int64_t>(change >> 1);
    row(at, value);
    if (step == 0) return row(at, -1);
    at += step * quantum_;
  }
}

}  // namespace assay::unwind
