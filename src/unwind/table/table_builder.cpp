#include "unwind/table/table_builder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include <dwarf.h>
#include <elf.h>

#include "unwind/arch_x86_64.h"
#include "unwind/table/byte_reader.h"
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

struct Source {  // keeps a section's bytes alive as long as its Cfi
  std::vector<std::byte> bytes;
  Cfi cfi;
};

std::vector<Segment> executable_segments(const ElfImage& image) {
  std::vector<Segment> out;
  for (const auto& s : image.segments()) {
    if (s.executable) out.push_back({s.file_offset, s.vaddr, s.file_bytes, 0});
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

// .eh_frame by its section, or, in files without section headers, by .eh_frame_hdr's pointer to it.
std::optional<Source> read_eh_frame(const ElfImage& image) {
  Source source;
  uint64_t vaddr = 0, data_base = image.eh_frame_hdr().value_or(0);
  if (const auto* section = image.section(".eh_frame")) {
    if (section->bytes > kMaxCfiBytes) return std::nullopt;
    source.bytes = image.read(*section);
    vaddr = section->vaddr;
  } else if (image.eh_frame_hdr()) {
    auto header = image.read_at_vaddr(data_base, 8);
    ByteReader in(header);
    uint8_t version = in.u8(), encoding = in.u8();
    in.u16();
    int32_t distance = in.fixed<int32_t>();
    if (!in.ok() || version != 1 || encoding != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
      return std::nullopt;
    vaddr = data_base + 4 + static_cast<uint64_t>(int64_t{distance});
    source.bytes = image.read_at_vaddr(vaddr, kMaxCfiBytes);
  }
  if (source.bytes.empty()) return std::nullopt;
  source.cfi = Cfi::read(source.bytes, vaddr, Cfi::Format::eh_frame, data_base);
  return source;
}

std::optional<Source> read_debug_frame(const ElfImage& image) {
  const auto* section = image.section(".debug_frame");
  if (!section || section->bytes > kMaxCfiBytes) return std::nullopt;
  Source source;
  source.bytes = image.read(*section);
  if (source.bytes.empty()) return std::nullopt;
  source.cfi = Cfi::read(source.bytes, 0, Cfi::Format::debug_frame);
  return source;
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
std::vector<Item> find_sigreturns(const ElfImage& image, const std::vector<Range>& gaps) {
  std::vector<Item> out;
  for (const Range& gap : gaps) {
    if (gap.end - gap.begin <= Arch::kSigreturnBytes) continue;
    auto code = image.read_at_vaddr(gap.begin, gap.end - gap.begin);
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
std::vector<Item> find_clone3(const ElfImage& image, const std::vector<Range>& gaps) {
  constexpr uint64_t kLargestGap = 64;
  static constexpr std::array<uint8_t, 5> kLoadNumber{0xb8, 0xb3, 0x01, 0, 0};  // mov $435,%eax
  std::vector<Item> out;
  for (const Range& gap : gaps) {
    if (gap.end - gap.begin > kLargestGap || gap.begin < kLoadNumber.size()) continue;
    uint64_t before = gap.begin - kLoadNumber.size();
    auto code = image.read_at_vaddr(before, gap.end - before);
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
std::vector<Item> find_stubs(const ElfImage& image) {
  constexpr uint64_t kStubBytes = 16, kMaxStubs = 1 << 20;
  std::vector<Item> out;
  for (const auto& section : image.sections()) {
    if (!section.name.starts_with(".plt") && section.name != ".iplt") continue;
    auto code = image.read(section);
    for (uint64_t at = 0; at + kStubBytes <= code.size() && out.size() < kMaxStubs; at += 8) {
      auto byte = [&](uint64_t i) { return static_cast<uint8_t>(code[at + i]); };
      uint64_t jump =
          byte(0) == 0xf3 && byte(1) == 0x0f && byte(2) == 0x1e && byte(3) == 0xfa ? 4 : 0;
      if (byte(jump) == 0xf2) ++jump;
      if (byte(jump) != 0xff || byte(jump + 1) != 0x25) continue;
      uint64_t begin = section.vaddr + at;
      if (begin < section.vaddr || begin > UINT64_MAX - kStubBytes) break;
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
void for_each_symbol(const ElfImage& image, const Use& use) {
  const auto* table = image.section(".symtab");
  if (!table) table = image.section(".dynsym");
  if (!table || table->link >= image.sections().size()) return;
  auto bytes = image.read(*table);
  auto names = image.read(image.sections()[table->link]);
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= bytes.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, bytes.data() + at, sizeof symbol);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names.size()) continue;
    auto text = reinterpret_cast<const char*>(names.data()) + symbol.st_name;
    use(std::string_view(text,
                         ::strnlen(text, std::min<size_t>(names.size() - symbol.st_name, 64))),
        symbol);
  }
}

std::vector<Item> find_first_functions(const ElfImage& image, const std::vector<Range>& gaps) {
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
struct GoSource {
  std::vector<std::byte> bytes;
  GoFunctions functions;
};

std::optional<GoSource> read_go_functions(const ElfImage& image) {
  const auto* section = image.section(".gopclntab");
  if (!section) section = image.section(".data.rel.ro.gopclntab");
  if (!section || section->bytes > kMaxCfiBytes) return std::nullopt;
  const auto* text = image.section(".text");
  GoSource source;
  source.bytes = image.read(*section);
  source.functions = GoFunctions::read(source.bytes, text ? text->vaddr : 0);
  return source;
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
std::vector<Item> find_last_calls(const ElfImage& image, const std::vector<Range>& gaps) {
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
    auto code = image.read_at_vaddr(gap.begin, gap.end - gap.begin);
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

bool is_go_program(const ElfImage& image) {
  return image.section(".gopclntab") || image.section(".data.rel.ro.gopclntab") ||
         image.section(".note.go.buildid");
}

}  // namespace

Result<std::vector<std::byte>> build_table(const ElfImage& image, std::string_view build_id,
                                           const ElfImage* debug_image) {
  if (image.machine() != Arch::kElfMachine) {
    return fail("ELF machine {} is not supported: stacks are unwound on x86-64", image.machine());
  }
  auto segments = executable_segments(image);
  auto eh_frame = read_eh_frame(image);
  auto debug_frame = read_debug_frame(image);
  if (!debug_frame && debug_image) debug_frame = read_debug_frame(*debug_image);

  std::vector<Item> items;
  if (eh_frame) items = items_of(eh_frame->cfi, segments);
  if (debug_frame) add_uncovered(items, items_of(debug_frame->cfi, segments), segments);
  auto gaps = uncovered(items, segments);
  add_uncovered(items, find_sigreturns(image, gaps), segments);
  add_uncovered(items, find_clone3(image, gaps), segments);
  add_uncovered(items, find_stubs(image), segments);
  add_uncovered(items, find_first_functions(image, gaps), segments);
  add_uncovered(items, find_last_calls(image, gaps), segments);

  auto go = read_go_functions(image);
  if (go) add_uncovered(items, items_of(go->functions, segments), segments);

  RowWriter writer(std::move(segments));
  write_rows(writer, items);
  return writer.finish(Arch::kElfMachine, build_id, is_go_program(image) ? uint32_t{kTableGo} : 0u);
}

}  // namespace assay::unwind
