#include "symbol/jit/jit_code.h"

#include <algorithm>
#include <charconv>

#include "base/byte_reader.h"

namespace assay::symbol {
namespace {

constexpr size_t kMaxFunctions = 2 << 20;
constexpr size_t kMaxNameBytes = 1024;
constexpr uint64_t kMaxFunctionBytes = 256 << 20;
constexpr uint32_t kMaxRecordBytes = 64 << 20;
constexpr size_t kMaxLinesPerFunction = 64 << 10;
constexpr size_t kMaxPending = 1024;

constexpr uint32_t kJitDumpMagic = 0x4A695444;  // "JiTD"

bool parse_hex(std::string_view& text, uint64_t& out) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.starts_with(' ')) return false;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return true;
}

}  // namespace

void JitCode::add(JitFunction function) {
  bool sane = function.end > function.start && function.end - function.start <= kMaxFunctionBytes;
  if (!sane || by_start_.size() >= kMaxFunctions) return;
  auto it = by_start_.upper_bound(function.start);
  if (it != by_start_.begin() && std::prev(it)->second.end > function.start) --it;
  while (it != by_start_.end() && it->second.start < function.end) it = by_start_.erase(it);
  by_start_[function.start] = std::move(function);
}

void JitCode::move(uint64_t from, uint64_t to) {
  auto it = by_start_.find(from);
  if (it == by_start_.end()) return;
  JitFunction function = std::move(it->second);
  by_start_.erase(it);
  uint64_t size = function.end - function.start;
  for (auto& line : function.lines) line.address = line.address - from + to;
  if (to > UINT64_MAX - size) return;
  function.start = to;
  function.end = to + size;
  add(std::move(function));
}

const JitFunction* JitCode::find(uint64_t address) const {
  auto it = by_start_.upper_bound(address);
  if (it == by_start_.begin()) return nullptr;
  --it;
  return address < it->second.end ? &it->second : nullptr;
}

size_t read_perf_map(std::string_view bytes, JitCode& out) {
  size_t used = 0;
  for (;;) {
    size_t end = bytes.find('\n', used);
    if (end == std::string_view::npos) return used;
    std::string_view line = bytes.substr(used, end - used);
    used = end + 1;
    JitFunction function;
    uint64_t size = 0;
    if (!parse_hex(line, function.start) || !parse_hex(line, size) || line.empty()) continue;
    if (size == 0) size = 1;
    if (function.start > UINT64_MAX - size) continue;
    function.end = function.start + size;
    function.name = line.substr(0, kMaxNameBytes);
    out.add(std::move(function));
  }
}

size_t JitDumpReader::read(std::string_view bytes, JitCode& out) {
  size_t used = 0;
  if (!header_read_) {
    ByteReader cursor(bytes);
    uint32_t magic = cursor.u32();
    uint32_t version = cursor.u32();
    uint32_t size = cursor.u32();
    if (!cursor.ok() || bytes.size() < 40) return 0;
    if (magic != kJitDumpMagic || version != 1 || size < 40 || size > 4096) {
      damaged_ = true;
      return bytes.size();
    }
    if (size > bytes.size()) return 0;
    header_read_ = true;
    used = size;
  }
  while (!damaged_) {
    ByteReader cursor(bytes.substr(used));
    uint32_t id = cursor.u32();
    uint32_t size = cursor.u32();
    cursor.u64();  // time
    if (!cursor.ok()) break;
    if (size < 16 || size > kMaxRecordBytes) {
      damaged_ = true;
      return bytes.size();
    }
    if (size > bytes.size() - used) break;
    read_record(id, bytes.substr(used + 16, size - 16), out);
    used += size;
  }
  return used;
}

void JitDumpReader::read_record(uint32_t id, std::string_view body, JitCode& out) {
  enum : uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2 };
  ByteReader cursor(body);
  if (id == kLoad) {
    cursor.skip(16);  // pid, tid, vma
    JitFunction function;
    function.start = cursor.u64();
    uint64_t size = cursor.u64();
    cursor.u64();  // index
    function.name = cursor.text().substr(0, kMaxNameBytes);
    if (!cursor.ok() || function.start > UINT64_MAX - size) return;
    function.end = function.start + size;
    auto lines = pending_lines_.find(function.start);
    if (lines != pending_lines_.end()) {
      function.lines = std::move(lines->second);
      pending_lines_.erase(lines);
    }
    out.add(std::move(function));
  } else if (id == kMove) {
    cursor.skip(16);
    uint64_t from = cursor.u64();
    uint64_t to = cursor.u64();
    if (cursor.ok()) out.move(from, to);
  } else if (id == kDebugInfo) {
    uint64_t address = cursor.u64();
    uint64_t count = std::min<uint64_t>(cursor.u64(), kMaxLinesPerFunction);
    std::vector<JitLine> lines;
    for (uint64_t i = 0; i < count && cursor.ok(); ++i) {
      JitLine line;
      line.address = cursor.u64();
      line.line = cursor.u32();
      cursor.u32();  // discriminator
      std::string_view file = cursor.text();
      if (!cursor.ok()) break;
      // "\xff" alone: the file of the entry before.
      line.file = file == "\xff" && !lines.empty() ? lines.back().file
                                                   : std::string(file.substr(0, kMaxNameBytes));
      lines.push_back(std::move(line));
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const JitLine& a, const JitLine& b) { return a.address < b.address; });
    if (pending_lines_.size() >= kMaxPending) pending_lines_.clear();
    pending_lines_[address] = std::move(lines);
  }
}

}  // namespace assay::symbol
