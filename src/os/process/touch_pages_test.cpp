#include "os/process/touch_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace assay::os {
namespace {

constexpr size_t kPage = 4096;

bool is_mapped_in(void* page) {
  // /proc/self/pagemap, bit 63: present.
  FILE* file = fopen("/proc/self/pagemap", "re");
  uint64_t entry = 0;
  fseek(file, static_cast<long>(reinterpret_cast<uintptr_t>(page) / kPage * 8), SEEK_SET);
  size_t got = fread(&entry, sizeof entry, 1, file);
  fclose(file);
  return got == 1 && (entry >> 63 & 1) != 0;
}

TEST(TouchPages, MapsInWhatWasNeverTouchedAndChangesNothing) {
  auto* memory = static_cast<char*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  memory[0] = 7;
  EXPECT_FALSE(is_mapped_in(memory + kPage));
  touch_pages(getpid(), reinterpret_cast<uint64_t>(memory) + 100,
              reinterpret_cast<uint64_t>(memory) + 2 * kPage);
  EXPECT_TRUE(is_mapped_in(memory + kPage));
  EXPECT_FALSE(is_mapped_in(memory + 2 * kPage)) << "beyond what was asked for";
  EXPECT_EQ(memory[0], 7);
  EXPECT_EQ(memory[kPage], 0);
  munmap(memory, 3 * kPage);
}

TEST(TouchPages, UnreadableMemoryAndMissingProcessesAreLeftAlone) {
  touch_pages(getpid(), 0, 10 * kPage);
  touch_pages(1 << 30, 0x1000, 0x2000);
}

}  // namespace
}  // namespace assay::os
