#include "symbol/kernel/kernel_symbols.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/file_door.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxTextBytes = 256 << 20;
constexpr size_t kUsualTextBytes = 8 << 20;

}  // namespace

KernelSymbols KernelSymbols::load(const std::string& path) {
  auto found = file_door().open(path, Purpose::kernel_symbols);
  if (!found) {
    KernelSymbols none;
    none.problem_ = found.error().what;
    return none;
  }
  std::string text;
  text.reserve(kUsualTextBytes);
  char buffer[1 << 14];  // the kernel gives a page at a time
  while (text.size() < kMaxTextBytes) {
    ssize_t n = ::read(found->fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  return parse(std::move(text));
}

KernelSymbols KernelSymbols::parse(std::string text) {
  KernelSymbols out;
  if (text.size() > kMaxTextBytes) text.resize(kMaxTextBytes);
  out.text_ = std::move(text);
  for (size_t at = 0; at < out.text_.size();) {
    size_t end = std::min(out.text_.find('\n', at), out.text_.size());
    out.add_line(at, end);
    at = end + 1;
  }
  for (auto* table : {&out.code_, &out.data_}) {
    std::stable_sort(table->begin(), table->end(),
                     [](const Entry& a, const Entry& b) { return a.start < b.start; });
  }
  if (out.code_.empty()) {
    out.problem_ =
        "kernel addresses are hidden; run as root or: sudo sysctl kernel.kptr_restrict=0";
  }
  return out;
}

// "ffffffff81000000 T _text" or "ffffffffc0a1b000 t nft_do_chain	[nf_tables]"
void KernelSymbols::add_line(size_t begin, size_t end) {
  const char* base = text_.data();
  uint64_t address = 0;
  auto [after, error] = std::from_chars(base + begin, base + end, address, 16);
  if (error != std::errc() || address == 0) return;
  size_t at = static_cast<size_t>(after - base);
  if (end - at < 4 || base[at] != ' ' || base[at + 2] != ' ') return;
  char type = base[at + 1];
  size_t name = at + 3;
  std::string_view rest(base + name, end - name);
  size_t name_size = std::min(rest.find_first_of("\t "), rest.size());
  Entry entry{address, static_cast<uint32_t>(name), static_cast<uint32_t>(name_size), 0, 0};
  size_t open = rest.find('[', name_size);
  if (open != std::string_view::npos && rest.ends_with("]")) {
    entry.module_at = static_cast<uint32_t>(name + open + 1);
    entry.module_size = static_cast<uint32_t>(rest.size() - open - 2);
  }
  switch (type) {
    case 't':
    case 'T':
    case 'w':
    case 'W':
      code_.push_back(entry);
      break;
    case 'd':
    case 'D':
    case 'b':
    case 'B':
    case 'r':
    case 'R':
      data_.push_back(entry);
      break;
    default:
      break;  // absolute and per-CPU offsets are no addresses
  }
}

std::optional<KernelSymbols::Range> KernelSymbols::core_range() const {
  Range range;
  for (const Entry& entry : code_) {
    if (entry.module_size > 0) continue;
    std::string_view name = std::string_view(text_).substr(entry.name_at, entry.name_size);
    if (name == "_stext") range.begin = entry.start;
    if (name == "_etext") range.end = entry.start;
  }
  return range.begin != 0 && range.begin < range.end ? std::optional(range) : std::nullopt;
}

std::string KernelSymbols::core_text() const {
  std::string text;
  auto range = core_range();
  for (const Entry& entry : code_) {
    if (!range || entry.start < range->begin || entry.start > range->end) continue;
    if (entry.module_size > 0) continue;
    text += fmt::format("{:x} t {}\n", entry.start,
                        std::string_view(text_).substr(entry.name_at, entry.name_size));
  }
  return text;
}

bool KernelSymbols::find(const std::vector<Entry>& table, uint64_t address,
                         KernelSymbol& out) const {
  auto it =
      std::upper_bound(table.begin(), table.end(), address,
                       [](uint64_t value, const Entry& entry) { return value < entry.start; });
  if (it == table.begin()) return false;
  --it;
  if (address - it->start > kMaxKernelSymbolBytes) return false;
  // Several names of one address: the first in the kernel's own order.
  while (it != table.begin() && std::prev(it)->start == it->start) --it;
  out.name = std::string_view(text_).substr(it->name_at, it->name_size);
  out.module = std::string_view(text_).substr(it->module_at, it->module_size);
  out.start = it->start;
  return true;
}

}  // namespace assay::symbol
