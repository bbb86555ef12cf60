#include "inject/core/pages.h"

#include <cstdint>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/core/syscalls.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

namespace assay::inject {

void* map_pages(size_t bytes, const char* name) {
  long at = raw_syscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is_error(at)) return nullptr;
  raw_syscall(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, static_cast<long>(bytes),
              reinterpret_cast<long>(name), 0);
  return reinterpret_cast<void*>(at);
}

void unmap_pages(void* at, size_t bytes) {
  raw_syscall(SYS_munmap, reinterpret_cast<long>(at), static_cast<long>(bytes), 0, 0, 0, 0);
}

}  // namespace assay::inject
