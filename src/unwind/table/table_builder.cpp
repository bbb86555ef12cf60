#include "unwind/table/table_builder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <dwarf.h>
#include <elf.h>

#include "base/byte_reader.h"
#include "unwind/arch_x86_64.h"
#include "unwind/table/cfi.h"
#include "unwind/table/go_functions.h"
#include "unwind/table/row_writer.h"

namespace assay::unwind {

namespace {

using Arch = X86_64;

constexpr size_t kMaxSegments = 64;
constexpr uint64_t kMaxTextBytes = uint64_t{1} << 32;
constexpr uint64_t kMaxCfiBytes = uint64_t{1} << 28;

// A range of addresses and where its rules come from: an FDE, or fixed rule bits.
struct Item {
  uint64_t begin = 0, end = 0;
  const Cfi* cfi = nullptr;
  const Cfi::Fde* fde = nullptr;
  uint32_t rule_bits = 0;
  const GoFunctions* go = nullptr;
  const GoFunctions::Function* function = nullptr;
};

struct Range {
  uint64_t begin = 0, end = 0;
};

std::span<const std::byte> as_span(std::string_view bytes) {
  return std::as_bytes(std::span(bytes));
}

std::vector<Segment> executable_segments(ElfFile& image) {
  std::vector<Segment> out;
  for (const auto& s : image.segments()) {
    if (s.type != PT_LOAD || !(s.flags & PF_X) || s.offset >= image.source().size()) continue;
    uint64_t size = std::min(s.file_size, image.source().size() - s.offset);
    if (size == 0 || s.address > UINT64_MAX - size) continue;
    out.push_back({s.offset, s.address, size, 0});
  }
  std::ranges::sort(out, {}, &Segment::vaddr);
  uint64_t end = 0, total = 0;
  std::erase_if(out, [&](const Segment& s) {
    if (s.vaddr < end || s.bytes > kMaxTextBytes - total) return true;
    end = s.vaddr + s.bytes;
    total += s.bytes;
    return false;
  });
  if (out.size() > kMaxSegments) out.resize(kMaxSegments);
  return out;
}

// The bytes of a section that is not absurdly large; of call-frame information and Go's tables.
std::span<const std::byte> read_table(ElfFile& image, const elf::Section& section) {
  if (section.size > kMaxCfiBytes) return {};
  return as_span(image.bytes(section).all());
}

// Where .eh_frame_hdr is, as the program headers give it.
std::optional<uint64_t> eh_frame_hdr(const ElfFile& image) {
  for (const auto& segment : image.segments()) {
    if (segment.type == PT_GNU_EH_FRAME) return segment.address;
  }
  return std::nullopt;
}

// .eh_frame by its section, or, in files without section headers, by .eh_frame_hdr's pointer to it.
std::optional<Cfi> read_eh_frame(ElfFile& image) {
  std::span<const std::byte> bytes;
  auto header_at = eh_frame_hdr(image);
  uint64_t vaddr = 0, data_base = header_at.value_or(0);
  if (const auto* section = image.find(".eh_frame")) {
    bytes = read_table(image, *section);
    vaddr = section->address;
  } else if (header_at) {
    ByteReader in(image.view_at(data_base, 8));
    uint8_t version = in.u8(), encoding = in.u8();
    in.u16();
    int32_t distance = in.fixed<int32_t>();
    if (!in.ok() || version != 1 || encoding != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
      return std::nullopt;
    vaddr = data_base + 4 + static_cast<uint64_t>(int64_t{distance});
    bytes = as_span(image.view_at(vaddr, kMaxCfiBytes));
  }
  if (bytes.empty()) return std::nullopt;
  return Cfi::read(bytes, vaddr, Cfi::Format::eh_frame, data_base);
}

std::optional<Cfi> read_debug_frame(ElfFile& image) {
  const auto* section = image.find(".debug_frame");
  if (!section) return std::nullopt;
  auto bytes = read_table(image, *section);
  if (bytes.empty()) return std::nullopt;
  return Cfi::read(bytes, 0, Cfi::Format::debug_frame);
}

// Sorts by address and makes ranges disjoint: where two overlap, the later beginning wins from
// there.
void make_disjoint(std::vector<Item>& items) {
  std::ranges::stable_sort(items, {}, &Item::begin);
  for (size_t i = 0; i + 1 < items.size(); ++i) {
    items[i].end = std::min(items[i].end, items[i + 1].begin);
  }
  std::erase_if(items, [](const Item& i) { return i.begin >= i.end; });
}

std::vector<Item> items_of(const Cfi& cfi, const std::vector<Segment>& segments) {
  std::vector<Item> out;
  out.reserve(cfi.fdes().size());
  for (const Cfi::Fde& fde : cfi.fdes()) {
    for (const Segment& s : segments) {
      if (fde.begin < s.vaddr || fde.begin - s.vaddr >= s.bytes) continue;
      out.push_back({fde.begin, std::min(fde.end, s.vaddr + s.bytes), &cfi, &fde, 0});
      break;
    }
  }
  make_disjoint(out);
  return out;
}

std::vector<Range> uncovered(const std::vector<Item>& items, const std::vector<Segment>& segments) {
  std::vector<Range> out;
  auto item = items.begin();
  for (const Segment& s : segments) {
    uint64_t at = s.vaddr, end = s.vaddr + s.bytes;
    for (; item != items.end() && item->begin < end; ++item) {
      if (at < item->begin) out.push_back({at, item->begin});
      at = std::max(at, item->end);
    }
    if (at < end) out.push_back({at, end});
  }
  return out;
}

const Range* find_range(const std::vector<Range>& ranges, uint64_t address) {
  auto after = std::ranges::upper_bound(ranges, address, {}, &Range::begin);
  if (after == ranges.begin()) return nullptr;
  const Range& range = *std::prev(after);
  return address < range.end ? &range : nullptr;
}

// Adds `more` where nothing is yet; an item that reaches into covered addresses ends there.
void add_uncovered(std::vector<Item>& items, std::vector<Item> more,
                   const std::vector<Segment>& segments) {
  auto gaps = uncovered(items, segments);
  for (Item& item : more) {
    const Range* gap = find_range(gaps, item.begin);
    if (!gap) continue;
    item.end = std::min(item.end, gap->end);
    items.push_back(item);
  }
  make_disjoint(items);
}

// A handler returns to the restorer's first byte; callers are looked up one byte before it, so the
// rule begins there, as glibc's own call-frame information does.
std::vector<Item> find_sigreturns(ElfFile& image, const std::vector<Range>& gaps) {
  std::vector<Item> out;
  for (const Range& gap : gaps) {
    if (gap.end - gap.begin <= Arch::kSigreturnBytes) continue;
    auto code = as_span(image.view_at(gap.begin, gap.end - gap.begin));
    for (size_t at = Arch::find_sigreturn(code, 0); at < code.size();
         at = Arch::find_sigreturn(code, at + 1)) {
      uint64_t begin = gap.begin + at;
      out.push_back({begin - (at > 0 ? 1 : 0), begin + Arch::kSigreturnBytes, nullptr, nullptr,
                     Row::pack(RowType::signal, 0, 0)});
    }
  }
  return out;
}

// glibc ends clone3's call-frame information before the system call, since it would be wrong in the
// new thread; both threads return from the kernel to code without any.
std::vector<Item> find_clone3(ElfFile& image, const std::vector<Range>& gaps) {
  constexpr uint64_t kLargestGap = 64;
  static constexpr std::array<uint8_t, 5> kLoadNumber{0xb8, 0xb3, 0x01, 0, 0};  // mov $435,%eax
  std::vector<Item> out;
  for (const Range& gap : gaps) {
    if (gap.end - gap.begin > kLargestGap || gap.begin < kLoadNumber.size()) continue;
    uint64_t before = gap.begin - kLoadNumber.size();
    auto code = as_span(image.view_at(before, gap.end - before));
    size_t at = Arch::find_clone3(code);
    if (at < kLoadNumber.size() || at >= code.size()) continue;
    if (std::memcmp(code.data() + at - kLoadNumber.size(), kLoadNumber.data(),
                    kLoadNumber.size()) != 0)
      continue;
    uint64_t begin = before + at;
    out.push_back({begin, begin + Arch::kClone3Bytes, nullptr, nullptr,
                   Row::pack(RowType::end, 0, kEndOfNewThread)});
  }
  return out;
}

// Linkage stubs without call-frame information (static programs have such): an entry that begins
// with a jump through memory has not touched the stack.
std::vector<Item> find_stubs(ElfFile& image) {
  constexpr uint64_t kStubBytes = 16, kMaxStubs = 1 << 20;
  std::vector<Item> out;
  for (const auto& section : image.sections()) {
    if (!section.name.starts_with(".plt") && section.name != ".iplt") continue;
    auto code = as_span(image.bytes(section).all());
    for (uint64_t at = 0; at + kStubBytes <= code.size() && out.size() < kMaxStubs; at += 8) {
      auto byte = [&](uint64_t i) { return static_cast<uint8_t>(code[at + i]); };
      uint64_t jump =
          byte(0) == 0xf3 && byte(1) == 0x0f && byte(2) == 0x1e && byte(3) == 0xfa ? 4 : 0;
      if (byte(jump) == 0xf2) ++jump;
      if (byte(jump) != 0xff || byte(jump + 1) != 0x25) continue;
      uint64_t begin = section.address + at;
      if (begin < section.address || begin > UINT64_MAX - kStubBytes) break;
      out.push_back(
          {begin, begin + jump + 6, nullptr, nullptr, Row::pack(RowType::sp, kFpSame, 1)});
    }
  }
  return out;
}

// The functions in which threads begin, of C libraries built without call-frame information (musl).
bool is_first_function(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "_start",     "_start_c",          "_dlstart",
      "_dlstart_c", "__libc_start_main", "libc_start_main_stage2",
      "__clone",    "start_c11"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Calls `use(name, symbol)` for each defined symbol of .symtab, or of .dynsym when it was stripped.
template <class Use>
void for_each_symbol(ElfFile& image, const Use& use) {
  const auto* table = image.find(".symtab");
  if (!table) table = image.find(".dynsym");
  if (!table) return;
  image.for_each_symbol(*table, UINT64_MAX,
                        [&](const Elf64_Sym& symbol, const elf::SectionBytes& names) {
                          if (symbol.st_shndx == SHN_UNDEF) return;
                          std::string_view text = names.view(symbol.st_name, 64);
                          use(text.substr(0, text.find('\0')), symbol);
                        });
}

std::vector<Item> find_first_functions(ElfFile& image, const std::vector<Range>& gaps) {
  std::vector<Item> out, threads;
  std::vector<uint64_t> starts;
  bool is_musl = false;
  for_each_symbol(image, [&](std::string_view name, const Elf64_Sym& symbol) {
    const Range* gap = find_range(gaps, symbol.st_value);
    if (!gap) return;
    is_musl = is_musl || name == "libc_start_main_stage2" || name == "__dls3";
    starts.push_back(symbol.st_value);
    uint64_t end = std::min(gap->end, symbol.st_value + std::min<uint64_t>(symbol.st_size, 4096));
    Item item{symbol.st_value, end, nullptr, nullptr, Row::pack(RowType::end, 0, 0)};
    if (is_first_function(name)) out.push_back(item);
    // musl's threads begin in a static function of too common a name to be trusted elsewhere.
    if (name == "start") threads.push_back(item);
  });
  if (is_musl) out.insert(out.end(), threads.begin(), threads.end());
  std::ranges::sort(starts);
  for (Item& item : out) {
    if (item.end > item.begin) continue;
    // Assembly without a size: up to the next symbol.
    auto next = std::ranges::upper_bound(starts, item.begin);
    const Range* gap = find_range(gaps, item.begin);
    uint64_t end = next == starts.end() ? gap->end : std::min(*next, gap->end);
    item.end = std::min(end, item.begin + 256);
  }
  return out;
}

// .gopclntab of a Go program, wherever the linker put it.
std::optional<GoFunctions> read_go_functions(ElfFile& image) {
  const auto* section = image.find(".gopclntab");
  if (!section) section = image.find(".data.rel.ro.gopclntab");
  if (!section || section->size > kMaxCfiBytes) return std::nullopt;
  const auto* text = image.find(".text");
  return GoFunctions::read(read_table(image, *section), text ? text->address : 0);
}

std::vector<Item> items_of(const GoFunctions& go, const std::vector<Segment>& segments) {
  std::vector<Item> out;
  for (const auto& f : go.functions()) {
    for (const Segment& s : segments) {
      if (f.begin < s.vaddr || f.begin - s.vaddr >= s.bytes) continue;
      Item item{f.begin, std::min(f.end, s.vaddr + s.bytes)};
      if (f.is_top || f.switches_stacks) {
        item.rule_bits = Row::pack(RowType::end, 0, f.is_top ? 0 : kEndOfThisStack);
      } else {
        item.go = &go, item.function = &f;
      }
      out.push_back(item);
      break;
    }
  }
  return out;
}

// Go saves its frame pointer somewhere in the prologue, but the table does not say when: it is
// marked as lost, for no caller in Go needs it.
template <class ToText>
void write_go_function(RowWriter& writer, const Item& item, const ToText& to_text) {
  item.go->run(*item.function, [&](uint64_t begin, int64_t bytes) {
    if (begin >= item.end) return;
    bool fits = bytes >= 0 && bytes % 8 == 0 && bytes / 8 + 1 <= 0xffff;
    writer.add(to_text(begin), !fits ? kNotUnderstood
                                     : Row::pack(RowType::sp, bytes == 0 ? kFpSame : kFpLost,
                                                 static_cast<uint32_t>(bytes / 8 + 1)));
  });
}

// A stripped musl has no symbol for where it calls main, but the code after the call is the call of
// exit with main's result; likewise of pthread_exit after a thread's function.
std::vector<Item> find_last_calls(ElfFile& image, const std::vector<Range>& gaps) {
  std::vector<Item> out;
  uint64_t exits[2] = {};
  bool is_libc = false;
  for_each_symbol(image, [&](std::string_view name, const Elf64_Sym& symbol) {
    is_libc = is_libc || name == "__libc_start_main";
    if (name == "exit") exits[0] = symbol.st_value;
    if (name == "pthread_exit") exits[1] = symbol.st_value;
  });
  if (!is_libc) return out;
  for (const Range& gap : gaps) {
    if (!find_range(gaps, exits[0]) || gap.end - gap.begin < 16) continue;
    auto code = as_span(image.view_at(gap.begin, gap.end - gap.begin));
    for (size_t at = 1; at + 8 <= code.size(); ++at) {
      // [48] 89 c7: mov %eax,%edi; e8: call
      bool is_64 = code[at] == std::byte{0x48};
      size_t move = at + is_64;
      if (code[move] != std::byte{0x89} || code[move + 1] != std::byte{0xc7} ||
          code[move + 2] != std::byte{0xe8}) {
        continue;
      }
      int32_t distance;
      if (move + 7 > code.size()) break;
      std::memcpy(&distance, code.data() + move + 3, 4);
      uint64_t target = gap.begin + move + 7 + static_cast<uint64_t>(int64_t{distance});
      if (target == 0 || target != exits[is_64]) continue;
      uint64_t back = gap.begin + at;  // where the call before returns to
      out.push_back({back - 1, back + 1, nullptr, nullptr, Row::pack(RowType::end, 0, 0)});
    }
  }
  return out;
}

void write_rows(RowWriter& writer, const std::vector<Item>& items) {
  auto item = items.begin();
  for (const Segment& s : writer.segments()) {
    uint64_t at = s.vaddr, end = s.vaddr + s.bytes;
    auto to_text = [&](uint64_t vaddr) { return vaddr - s.vaddr + s.text; };
    for (; item != items.end() && item->begin < end; ++item) {
      if (item->begin > at || at == s.vaddr) writer.add(to_text(at), kNoCfi);
      if (item->fde) {
        writer.begin_function();
        bool is_signal = item->cfi->cie(*item->fde).is_signal_frame;
        item->cfi->run(*item->fde, [&](uint64_t begin, const RuleSet* rules) {
          if (begin < item->end) writer.add(to_text(begin), rules, is_signal);
        });
      } else if (item->go) {
        write_go_function(writer, *item, to_text);
      } else {
        writer.add(to_text(item->begin), item->rule_bits);
      }
      at = item->end;
    }
    if (at < end) writer.add(to_text(at), kNoCfi);
  }
}

bool is_go_program(const ElfFile& image) {
  return image.find(".gopclntab") || image.find(".data.rel.ro.gopclntab") ||
         image.find(".note.go.buildid");
}

}  // namespace

Result<std::vector<std::byte>> build_table(ElfFile& image, std::string_view build_id,
                                           ElfFile* debug_image) {
  if (image.machine() != Arch::kElfMachine) {
    return fail("ELF machine {} is not supported: stacks are unwound on x86-64", image.machine());
  }
  auto segments = executable_segments(image);
  auto eh_frame = read_eh_frame(image);
  auto debug_frame = read_debug_frame(image);
  if (!debug_frame && debug_image) debug_frame = read_debug_frame(*debug_image);

  std::vector<Item> items;
  if (eh_frame) items = items_of(*eh_frame, segments);
  if (debug_frame) add_uncovered(items, items_of(*debug_frame, segments), segments);
  auto gaps = uncovered(items, segments);
  add_uncovered(items, find_sigreturns(image, gaps), segments);
  add_uncovered(items, find_clone3(image, gaps), segments);
  add_uncovered(items, find_stubs(image), segments);
  add_uncovered(items, find_first_functions(image, gaps), segments);
  add_uncovered(items, find_last_calls(image, gaps), segments);

  auto go = read_go_functions(image);
  if (go) add_uncovered(items, items_of(*go, segments), segments);

  RowWriter writer(std::move(segments));
  write_rows(writer, items);
  return writer.finish(Arch::kElfMachine, build_id, is_go_program(image) ? uint32_t{kTableGo} : 0u);
}

}  // namespace assay::unwind
