#include "inject/preload/boot_memory.h"

#include <cstdint>

#include "inject/preload/live_table.h"

namespace assay::inject {

namespace {

constexpr size_t kBootBytes = 16 << 10;
alignas(64) char memory[kBootBytes];
size_t used = 0;

}  // namespace

void* boot_allocate(size_t bytes, size_t alignment) {
  if (alignment < 16) alignment = 16;
  size_t at = (used + sizeof(size_t) + alignment - 1) / alignment * alignment;
  if (alignment > 64 || bytes > kBootBytes || at > kBootBytes - bytes) return nullptr;
  used = at + bytes;
  __builtin_memcpy(memory + at - sizeof(size_t), &bytes, sizeof bytes);
  live_table.mark(memory + at);  // so that free looks at it
  return memory + at;
}

bool is_boot_memory(const void* at) {
  return reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(memory) < kBootBytes;
}

size_t boot_bytes(const void* at) {
  size_t bytes = 0;
  __builtin_memcpy(&bytes, static_cast<const char*>(at) - sizeof bytes, sizeof bytes);
  return bytes;
}

}  // namespace assay::inject
