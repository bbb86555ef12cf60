#include "lab/media/channel.h"

#include <climits>
#include <ctime>
#include <new>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/common/process.h"

namespace lab::media {

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int timeout_ms) {
  timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

int create_channel_memory() {
  int fd = memfd_create("lab-media-channel", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(Channel)) != 0) die("cannot create shared memory");
  return fd;
}

static void* map_shared(int fd) {
  void* memory = mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) die("cannot map shared memory");
  return memory;
}

Channel* construct_channel(int fd) {
  return new (map_shared(fd)) Channel;
}

Channel* attach_channel(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) die("the channel given by --channel-fd cannot be used");
  if (status.st_size != static_cast<off_t>(sizeof(Channel))) {
    die_saying("--channel-fd is not a channel of this program");
  }
  auto* channel = static_cast<Channel*>(map_shared(fd));
  close(fd);
  return channel;
}

}  // namespace lab::media
