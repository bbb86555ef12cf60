#include "os/process/mapping_lookup.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/fake_tree.h"

namespace assay::os {
namespace {

// What the kernel says at once and what its file says are the same, at every edge.
TEST(MappingLookup, AgreesWithTheFileOfThisProcess) {
  constexpr size_t kPage = 4096;
  char* at =
      static_cast<char*>(mmap(nullptr, 3 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(at + kPage, kPage, PROT_READ | PROT_WRITE), 0);
  ASSERT_EQ(munmap(at + 2 * kPage, kPage), 0);
  ProcFs proc;
  MappingLookup lookup(proc, getpid());
  auto begin = reinterpret_cast<uint64_t>(at);
  auto middle = lookup.at(begin + kPage + 17);
  ASSERT_TRUE(middle);
  EXPECT_EQ(middle->start, begin + kPage);
  EXPECT_EQ(middle->end, begin + 2 * kPage);
  EXPECT_TRUE(middle->writable);
  EXPECT_TRUE(middle->path.empty()) << middle->path;
  auto below = lookup.at(begin + kPage - 1);
  ASSERT_TRUE(below);
  EXPECT_EQ(below->end, begin + kPage);
  EXPECT_FALSE(below->writable);
  EXPECT_FALSE(lookup.at(begin + 2 * kPage));
  munmap(at, 2 * kPage);

  int here = 0;
  auto stack = lookup.at(reinterpret_cast<uint64_t>(&here));
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->path, "[stack]");
  auto code = lookup.at(reinterpret_cast<uint64_t>(&getpid));
  ASSERT_TRUE(code);
  EXPECT_TRUE(code->executable);
}

TEST(MappingLookup, ReadsTheFileWhereTheKernelCannotBeAsked) {
  FakeTree tree;
  tree.write("7/maps",
             "1000-2000 ---p 00000000 00:00 0\n"
             "2000-9000 rw-p 00000000 00:00 0 \n"
             "a000-b000 rw-p 00000000 00:00 0 [stack]\n");
  ProcFs proc(tree.root());
  MappingLookup lookup(proc, 7);
  ASSERT_TRUE(lookup.at(0x8fff));
  EXPECT_EQ(lookup.at(0x8fff)->start, 0x2000u);
  EXPECT_FALSE(lookup.at(0x9000));
  EXPECT_EQ(lookup.at(0xa000)->path, "[stack]");
  EXPECT_FALSE(MappingLookup(proc, 8).at(0x2000));
}

}  // namespace
}  // namespace assay::os
