// A target that swaps a descriptor, or takes shared memory away, neither gains a file nor ends us.
#include "capture/heap/trust/target_memory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/heap/heap_channel.h"
#include "capture/heap/testing/fake_heap_writer.h"

namespace assay::capture {
namespace {

constexpr const char* kName = "assay-test";

UniqueFd memory_file(const char* name, unsigned flags) {
  return UniqueFd(::memfd_create(name, flags | MFD_CLOEXEC));
}

std::string refusal(int fd, MemoryState state = MemoryState::fresh) {
  auto checked = check_memory_file(fd, kName, state);
  return checked ? "" : checked.error().what;
}

TEST(TargetMemory, AFreshMemoryFileOfItsNameIsTaken) {
  UniqueFd fd = memory_file(kName, MFD_ALLOW_SEALING);
  EXPECT_EQ(refusal(fd.get()), "");
  auto taken = take_memory_file(::getpid(), fd.get(), kName);
  ASSERT_TRUE(taken) << taken.error().text();
  EXPECT_NE(taken->get(), fd.get());
}

TEST(TargetMemory, AnythingElseIsRefused) {
  char path[] = "/dev/shm/assay-memory-XXXXXX";
  UniqueFd file(::mkstemp(path));
  EXPECT_NE(refusal(file.get()), "") << "a file with a name";
  ::unlink(path);
  EXPECT_NE(refusal(file.get()), "") << "a file that was deleted";
  UniqueFd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_NE(refusal(device.get()), "");
  UniqueFd other = memory_file("another", MFD_ALLOW_SEALING);
  EXPECT_NE(refusal(other.get()), "") << "of another name";
  UniqueFd filled = memory_file(kName, MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(filled.get(), 100), 0);
  EXPECT_NE(refusal(filled.get()), "") << "not empty";
  UniqueFd unsealable = memory_file(kName, 0);
  EXPECT_NE(refusal(unsealable.get()), "") << "it could be cut under a reader";
  UniqueFd fresh = memory_file(kName, MFD_ALLOW_SEALING);
  std::string link = "/proc/self/fd/" + std::to_string(fresh.get());
  UniqueFd read_only(::open(link.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(refusal(read_only.get()), "");
  EXPECT_NE(refusal(fresh.get(), MemoryState::sealed), "") << "not sealed yet";
  ASSERT_EQ(::fcntl(fresh.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(refusal(fresh.get(), MemoryState::sealed), "");
}

TEST(TargetMemory, MappedFilesAreLookedAtBeforeTheyAreOpened) {
  UniqueFd sealed = memory_file(kName, MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(sealed.get(), 4096), 0);
  ASSERT_EQ(::fcntl(sealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(open_mapped_memory("/proc/self/fd/" + std::to_string(sealed.get()), kName));
  EXPECT_FALSE(open_mapped_memory("/etc/passwd", kName));
  EXPECT_FALSE(open_mapped_memory("/dev/null", kName));
}

// A file that a launched program made can be cut at any moment: what is read then is nothing.
TEST(TargetMemory, AChannelThatIsCutUnderTheReaderIsEmpty) {
  char path[] = "/dev/shm/assay-memory-XXXXXX";
  UniqueFd file(::mkstemp(path));
  fake::HeapWriter writer;
  ASSERT_TRUE(writer.alloc(1, 0x1000, 64, {1}));
  ASSERT_EQ(::write(file.get(), writer.memory().data(), writer.memory().size()),
            static_cast<ssize_t>(writer.memory().size()));
  auto channel = HeapChannel::open(path);
  ASSERT_TRUE(channel) << channel.error().text();
  int seen = 0;
  (*channel)->drain([&](const HeapRecord&) { ++seen; });
  EXPECT_EQ(seen, 1);
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  (*channel)->drain([&](const HeapRecord&) { ++seen; });
  EXPECT_FALSE((*channel)->ready());  // each of these touches a page that is gone
  (*channel)->stop_sampling();
  EXPECT_EQ((*channel)->children().size(), 0u);
  EXPECT_EQ(seen, 1);
  ::unlink(path);
}

TEST(TargetMemory, RecordsThatCannotBeTrueAreCountedAndLeftOut) {
  fake::HeapWriter writer;
  HeapRing ring(writer.memory(), fake::HeapWriter::kRingBytes);
  ASSERT_TRUE(writer.alloc(uint64_t{1} << 63, 1, 64, {1}));  // a time before all time
  ASSERT_TRUE(writer.alloc(INT64_MAX, 1, 64, {1}));          // and one after it
  ASSERT_TRUE(writer.alloc(1, 1, UINT64_MAX, {1}));          // more than there is
  ASSERT_TRUE(writer.alloc(1, 1, 64, {1}, UINT64_MAX));      // a rate that weighs as much
  ASSERT_TRUE(writer.free(INT64_MAX, 1));
  ASSERT_TRUE(writer.alloc(1, 1, 64, {1}));
  int seen = 0;
  ring.drain(100, [&](const HeapRecord&) { ++seen; });
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(ring.damaged(), 5u);
}

}  // namespace
}  // namespace assay::capture
