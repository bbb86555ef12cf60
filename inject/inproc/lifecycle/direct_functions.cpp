// Replaces hooks.cpp and heap_source.cpp in libassay.a, which interposes nothing.
#include "inject/inproc/heap/heap_source.h"
#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/lifecycle/real_functions.h"

namespace assay::inproc {

int real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                        void* argument) {
  return pthread_create(thread, attributes, start, argument);
}

bool hooks_are_here() {
  return false;
}

bool start_heap_sampling() {
  return false;
}
bool heap_is_sampled() {
  return false;
}
HeapTotals heap_totals_now() {
  return {};
}
bool collect_heap(Arena&, Profile&) {
  return false;
}
bool write_heap_profile(assay_format, ByteBuffer&) {
  fail("the heap is sampled by libassay.so only: link it instead of libassay.a");
  return false;
}

}  // namespace assay::inproc
