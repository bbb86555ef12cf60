#include "os/process/touch_pages.h"

#include "os/process/target_memory.h"

namespace assay::os {

void touch_pages(pid_t pid, uint64_t begin, uint64_t end) {
  constexpr uint64_t kPage = 4096;
  constexpr int kMostPages = 64;
  uint64_t page = begin / kPage * kPage;
  for (int i = 0; i < kMostPages && page < end; ++i, page += kPage) {
    char byte = 0;
    if (!read_target_whole(pid, page, &byte, 1)) return;
  }
}

}  // namespace assay::os
