#include "inject/preload/attach.h"

#include "inject/preload/heap_channel.h"

extern "C" __attribute__((visibility("default"))) uint32_t assay_heap_version(void) {
  return assay::inject::kHeapChannelVersion;
}
