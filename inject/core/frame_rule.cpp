#include "inject/core/frame_rule.h"

#include <atomic>

#include <dlfcn.h>
#include <link.h>

#include "inject/core/cfi_program.h"
#include "inject/core/cfi_reader.h"

namespace assay::inject {

namespace {

// Decodes a DW_EH_PE_ value; only the encodings that linkers write into .eh_frame are known.
bool read_pointer(CfiReader& in, uint8_t encoding, uintptr_t& out) {
  uintptr_t here = reinterpret_cast<uintptr_t>(in.at());
  switch (encoding & 0x0f) {
    case 0x00:  // absptr
    case 0x04:  // udata8
    case 0x0c:  // sdata8
      out = in.fixed<uint64_t>();
      break;
    case 0x03:  // udata4
      out = in.fixed<uint32_t>();
      break;
    case 0x0b:  // sdata4
      out = static_cast<uintptr_t>(int64_t{in.fixed<int32_t>()});
      break;
    case 0x02:  // udata2
      out = in.fixed<uint16_t>();
      break;
    case 0x0a:  // sdata2
      out = static_cast<uintptr_t>(int64_t{in.fixed<int16_t>()});
      break;
    default:
      return false;
  }
  if ((encoding & 0xf0) == 0x10) out += here;  // pc-relative
  return in.ok() && (encoding & 0xf0) <= 0x10;
}

struct SearchEntry {
  int32_t function, fde;  // both relative to .eh_frame_hdr
};

// The last entry of the sorted table that begins at or before `pc`.
const uint8_t* find_fde(const uint8_t* header, const uint8_t* high, uintptr_t pc) {
  CfiReader in(header, high);
  uint8_t version = in.u8();
  in.u8();  // encoding of the address of .eh_frame: not needed
  uint8_t count_encoding = in.u8(), table_encoding = in.u8();
  in.fixed<int32_t>();
  uint32_t count = in.fixed<uint32_t>();
  if (!in.ok() || version != 1 || count_encoding != 0x03 || table_encoding != 0x3b) return nullptr;
  if (count == 0 || in.left() / sizeof(SearchEntry) < count) return nullptr;
  const uint8_t* table = in.at();
  auto entry = [&](uint32_t i) {
    SearchEntry e;
    std::memcpy(&e, table + i * sizeof(SearchEntry), sizeof e);
    return e;
  };
  intptr_t wanted = static_cast<intptr_t>(pc - reinterpret_cast<uintptr_t>(header));
  uint32_t first = 0, left = count;
  while (left > 0) {
    uint32_t half = left / 2;
    bool right = entry(first + half).function <= wanted;
    first = right ? first + half + 1 : first;
    left = right ? left - half - 1 : half;
  }
  return first == 0 ? nullptr : header + entry(first - 1).fde;
}

// The body of the entry at `at`, without its length.
CfiReader entry_body(const uint8_t* at, const uint8_t* low, const uint8_t* high) {
  if (at < low || at >= high) return CfiReader(high, high);
  CfiReader in(at, high);
  uint64_t bytes = in.fixed<uint32_t>();
  if (bytes == 0xffffffff) bytes = in.fixed<uint64_t>();
  return in.part(bytes);
}

struct Cie {
  CfiReader program{nullptr, nullptr};
  CfiFactors factors;
  uint8_t pointer_encoding = 0;
  bool has_augmentation = false, is_signal = false;
};

bool read_augmentation(const uint8_t* names, CfiReader& in, Cie& out) {
  if (*names == 0) return true;
  if (*names != 'z') return false;
  out.has_augmentation = true;
  CfiReader data = in.part(in.uleb());
  for (++names; *names; ++names) {
    uintptr_t personality = 0;
    uint8_t encoding = 0;
    switch (*names) {
      case 'R':
        out.pointer_encoding = data.u8();
        break;
      case 'P':
        encoding = data.u8();
        if (!read_pointer(data, encoding & 0x0f, personality)) return false;
        break;
      case 'L':
        data.u8();
        break;
      case 'S':
        out.is_signal = true;
        break;
      case 'B':
        break;
      default:
        return false;
    }
  }
  return data.ok();
}

bool read_cie(const uint8_t* at, const uint8_t* low, const uint8_t* high, Cie& out) {
  CfiReader in = entry_body(at, low, high);
  uint32_t id = in.fixed<uint32_t>();
  uint8_t version = in.u8();
  if (!in.ok() || id != 0 || (version != 1 && version != 3)) return false;
  const uint8_t* names = in.at();
  while (in.u8() != 0) {
  }
  out.factors.code = in.uleb();
  out.factors.data = in.sleb();
  uint64_t return_register = version == 1 ? in.u8() : in.uleb();
  if (!in.ok() || return_register != kReturnRegister) return false;
  if (!read_augmentation(names, in, out)) return false;
  out.program = in;
  return in.ok();
}

}  // namespace

FrameRule find_frame_rule_in(const uint8_t* eh_frame_hdr, const uint8_t* low, const uint8_t* high,
                             uintptr_t pc) {
  FrameRule none;
  none.kind = FrameRule::Kind::none;
  const uint8_t* at = find_fde(eh_frame_hdr, high, pc);
  if (!at) return none;
  CfiReader in = entry_body(at, low, high);
  const uint8_t* id_at = in.at();
  uint32_t back = in.fixed<uint32_t>();
  Cie cie;
  if (!in.ok() || back == 0 || !read_cie(id_at - back, low, high, cie)) return {};
  uintptr_t begin = 0, bytes = 0;
  if (!read_pointer(in, cie.pointer_encoding, begin) ||
      !read_pointer(in, cie.pointer_encoding & 0x0f, bytes))
    return {};
  if (pc < begin || pc - begin >= bytes) return none;  // a gap between functions
  if (cie.has_augmentation) in.part(in.uleb());
  if (!in.ok()) return {};
  if (cie.is_signal) {
    FrameRule rule;
    rule.kind = FrameRule::Kind::signal;
    return rule;
  }
  return run_cfi_program(cie.program, in, cie.factors, pc - begin);
}

namespace {

// The main program; it is never unloaded. `header` is set last, and read first.
struct {
  const uint8_t *low, *high;
  std::atomic<const uint8_t*> header;
} program;

}  // namespace

void learn_program() {
  static std::atomic<bool> is_learnt{false};
  if (is_learnt.exchange(true, std::memory_order_relaxed)) return;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        const uint8_t *low = nullptr, *high = nullptr, *header = nullptr;
        for (size_t i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          auto* at = reinterpret_cast<const uint8_t*>(info->dlpi_addr + part.p_vaddr);
          if (part.p_type == PT_GNU_EH_FRAME) header = at;
          if (part.p_type != PT_LOAD) continue;
          if (!low) low = at;
          high = at + part.p_memsz;
        }
        program.low = low, program.high = high;
        program.header.store(header, std::memory_order_release);
        return 1;  // the first object is the program
      },
      nullptr);
}

FrameRule find_frame_rule(uintptr_t pc) {
  FrameRule none;
  none.kind = FrameRule::Kind::none;
  auto* at = reinterpret_cast<const uint8_t*>(pc);
  const uint8_t* header = program.header.load(std::memory_order_acquire);
  if (header && at >= program.low && at < program.high)
    return find_frame_rule_in(header, program.low, program.high, pc);
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &found) != 0 || !found.dlfo_eh_frame)
    return none;
  return find_frame_rule_in(static_cast<const uint8_t*>(found.dlfo_eh_frame),
                            static_cast<const uint8_t*>(found.dlfo_map_start),
                            static_cast<const uint8_t*>(found.dlfo_map_end), pc);
}

}  // namespace assay::inject
