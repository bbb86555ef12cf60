#include "inject/inproc/write/module_map.h"

#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "inject/inproc/write/byte_buffer.h"
#include "inject/inproc/write/elf_reader.h"

namespace assay::inproc {
namespace {

constexpr size_t kMaxModules = 8192;

// One line of maps; false: not executable, or not a line.
bool parse_line(const char* line, size_t bytes, Module& module, Arena& arena) {
  char text[4352];
  if (bytes >= sizeof text) bytes = sizeof text - 1;
  std::memcpy(text, line, bytes);
  text[bytes] = 0;
  unsigned long start = 0, end = 0, offset = 0, inode = 0;
  char flags[8] = "";
  int path_at = 0;
  int fields =
      sscanf(text, "%lx-%lx %7s %lx %*s %lu %n", &start, &end, flags, &offset, &inode, &path_at);
  if (fields < 5 || flags[2] != 'x' || start >= end) return false;
  module.start = start;
  module.end = end;
  module.offset = offset;
  module.inode = inode;
  const char* path = text + path_at;
  size_t length = std::strlen(path);
  constexpr char kDeleted[] = " (deleted)";
  size_t tail = sizeof kDeleted - 1;
  if (length > tail && std::strcmp(path + length - tail, kDeleted) == 0) length -= tail;
  const char* copy = arena.copy(path, length);
  module.path = copy == nullptr ? "" : copy;
  return std::strcmp(module.path, "[vsyscall]") != 0;
}

}  // namespace

bool ModuleMap::read(Arena& arena) {
  ByteBuffer maps;
  if (!read_whole_file("/proc/self/maps", maps)) return false;
  size_t lines = 0;
  for (size_t i = 0; i < maps.size(); ++i) lines += maps.data()[i] == '\n';
  if (lines > kMaxModules) lines = kMaxModules;
  modules_ = arena.array<Module>(lines + 1);
  if (modules_ == nullptr) return false;
  count_ = 0;
  for (size_t at = 0; at < maps.size() && count_ < lines;) {
    auto* newline = static_cast<const char*>(std::memchr(maps.data() + at, '\n', maps.size() - at));
    size_t bytes =
        newline == nullptr ? maps.size() - at : static_cast<size_t>(newline - (maps.data() + at));
    Module module;
    if (parse_line(maps.data() + at, bytes, module, arena)) modules_[count_++] = module;
    at += bytes + 1;
  }
  for (Module& module : *this) {
    ElfReader elf;
    char hex[130];
    if (elf.open(module) && elf.build_id(hex, sizeof hex)) {
      const char* copy = arena.copy(hex, std::strlen(hex));
      if (copy != nullptr) module.build_id = copy;
    }
  }
  return true;
}

Module* ModuleMap::find(uintptr_t address) {
  size_t low = 0, high = count_;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (modules_[middle].end <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count_ && modules_[low].start <= address ? &modules_[low] : nullptr;
}

const char* program_path(Arena& arena) {
  char path[4096];
  ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
  const char* copy = bytes > 0 ? arena.copy(path, static_cast<size_t>(bytes)) : nullptr;
  return copy == nullptr ? "/proc/self/exe" : copy;
}

}  // namespace assay::inproc
