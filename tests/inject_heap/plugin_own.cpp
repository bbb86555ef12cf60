// A library with its own malloc, opened so that it uses that one (RTLD_DEEPBIND).
#include <cstddef>

namespace {

alignas(16) char arena[1 << 20];
size_t used = 0;

}  // namespace

extern "C" void* malloc(size_t size) {
  size_t begin = used;
  used = (used + size + 15) & ~size_t{15};
  return used <= sizeof arena ? arena + begin : nullptr;
}

extern "C" void free(void*) {}

extern "C" void* plugin_own_make(size_t size) {
  void* at = malloc(size);
  asm volatile("" : : "r"(at) : "memory");
  return at;
}

extern "C" bool plugin_own_holds(const void* at) {
  const char* byte = static_cast<const char*>(at);
  return byte >= arena && byte < arena + sizeof arena;
}
