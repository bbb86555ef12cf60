// A program with its own allocator linked in, which a sampler cannot hook.
#include <cstddef>
#include <cstdio>

#include <unistd.h>

namespace {
alignas(16) char memory[1 << 20];
size_t used = 0;
}  // namespace

extern "C" void* malloc(size_t size) noexcept {
  used = (used + 15) / 16 * 16 + size;
  return used <= sizeof memory ? memory + (used - size) / 16 * 16 : nullptr;
}
extern "C" void free(void*) noexcept {}

int main() {
  std::printf("ready\n");
  std::fflush(stdout);
  sleep(60);
  return 0;
}
