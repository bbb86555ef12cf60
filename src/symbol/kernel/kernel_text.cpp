#include "symbol/kernel/kernel_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file_door.h"

namespace assay::symbol {

std::optional<KernelText> KernelText::open(const std::string& path) {
  auto found = file_door().open(path, Purpose::cache);
  struct stat status {};
  if (!found || ::fstat(found->fd.get(), &status) != 0 || status.st_size <= 0) return std::nullopt;
  auto size = static_cast<size_t>(status.st_size);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, found->fd.get(), 0);
  if (at == MAP_FAILED) return std::nullopt;
  KernelText made;
  made.text_ = {static_cast<const char*>(at), size};
  if (!made.find_range()) return std::nullopt;
  return made;
}

KernelText::KernelText(KernelText&& other) noexcept
    : text_(std::exchange(other.text_, {})), range_(other.range_) {}

KernelText& KernelText::operator=(KernelText&& other) noexcept {
  if (this != &other) {
    unmap();
    text_ = std::exchange(other.text_, {});
    range_ = other.range_;
  }
  return *this;
}

KernelText::~KernelText() {
  unmap();
}

void KernelText::unmap() {
  if (!text_.empty()) ::munmap(const_cast<char*>(text_.data()), text_.size());
  text_ = {};
}

// "ffffffff81000000 t _stext"
std::optional<KernelText::Line> KernelText::line_at(size_t at) const {
  Line line;
  size_t before = at > 0 ? text_.rfind('\n', at - 1) : text_.npos;
  line.begin = before == text_.npos ? 0 : before + 1;
  line.end = std::min(text_.find('\n', at), text_.size());
  std::string_view text = text_.substr(line.begin, line.end - line.begin);
  auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), line.address, 16);
  auto digits = static_cast<size_t>(after - text.data());
  if (error != std::errc() || text.size() < digits + 4) return std::nullopt;
  line.name = text.substr(digits + 3);
  return line;
}

KernelText::Line KernelText::first_of(Line line) const {
  while (line.begin > 0) {
    auto before = line_at(line.begin - 1);
    if (!before || before->address != line.address) break;
    line = *before;
  }
  return line;
}

bool KernelText::find_range() {
  auto has = [this](std::optional<Line> line, std::string_view name) {
    if (!line) return false;
    uint64_t address = line->address;
    while (line && line->address == address) {
      if (line->name == name) return true;
      if (line->end + 1 >= text_.size()) break;
      line = line_at(line->end + 1);
    }
    return false;
  };
  if (!text_.ends_with('\n')) return false;
  auto first = line_at(0), last = line_at(text_.size() - 1);
  if (!first || !last || first->address >= last->address) return false;
  range_ = {first->address, last->address};
  return has(first, "_stext") && has(first_of(*last), "_etext");
}

bool KernelText::find_code(uint64_t address, KernelSymbol& out) const {
  std::optional<Line> found;
  for (size_t begin = 0, end = text_.size(); begin < end;) {
    auto line = line_at(begin + (end - begin) / 2);
    if (!line) return false;
    if (line->address <= address) {
      begin = line->end + 1;
      found = line;
    } else {
      end = line->begin;
    }
  }
  if (!found || address - found->address > kMaxKernelSymbolBytes) return false;
  Line first = first_of(*found);  // several names of one address: the kernel's first
  out.name = first.name;
  out.module = {};
  out.start = first.address;
  return true;
}

}  // namespace assay::symbol
