#include "os/process/touch_pages.h"

#include <sys/uio.h>

namespace assay::os {

void touch_pages(pid_t pid, uint64_t begin, uint64_t end) {
  constexpr uint64_t kPage = 4096;
  constexpr int kMostPages = 64;
  uint64_t page = begin / kPage * kPage;
  for (int i = 0; i < kMostPages && page < end; ++i, page += kPage) {
    char byte = 0;
    iovec local{&byte, 1};
    iovec remote{reinterpret_cast<void*>(page), 1};
    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != 1) return;
  }
}

}  // namespace assay::os
