// A library that the test program opens and closes while it is sampled.
#include <cstdlib>

extern "C" void* plugin_make(size_t size) {
  void* at = malloc(size);
  asm volatile("" : : "r"(at) : "memory");
  return at;
}
