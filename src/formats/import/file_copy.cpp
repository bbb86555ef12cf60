#include "formats/import/file_copy.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "base/file_door.h"

namespace assay::formats {
namespace {

constexpr size_t kPiece = size_t{2} << 20;

// As much as there is, up to `size`; −1: errno.
ssize_t read_at(int fd, char* into, size_t size, size_t offset) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = ::pread(fd, into + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

std::unexpected<Error> too_large(size_t size) {
  return fail_with_remedy(fmt::format("no memory for {} MB", size >> 20),
                          "read it on a machine with more memory", ENOMEM);
}

}  // namespace

Result<std::unique_ptr<FileCopy>> FileCopy::read(int fd, size_t size, size_t most_in_memory) {
  std::unique_ptr<FileCopy> copy(new FileCopy());
  auto done = size <= most_in_memory ? copy->into_memory(fd, size) : copy->into_file(fd, size);
  if (!done) return std::unexpected(done.error());
  return copy;
}

// Piece by piece by a few threads: most of the time goes into making pages ready.
Result<void> FileCopy::into_memory(int fd, size_t size) {
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return too_large(size);
  at_ = static_cast<char*>(at);
  mapped_ = size;
  std::atomic<size_t> next = 0, end = size;
  std::atomic<int> failed = 0;
  auto work = [&] {
    for (size_t offset; (offset = next.fetch_add(kPiece)) < end;) {
      size_t wanted = std::min(kPiece, size - offset);
      // All pages of a piece at once: a fault for each costs more than its contents. Where the
      // kernel cannot (before Linux 5.14), the pages come as they are written to.
      ::madvise(at_ + offset, wanted, MADV_POPULATE_WRITE);
      ssize_t got = read_at(fd, at_ + offset, wanted, offset);
      if (got < 0) failed = errno;
      if (got < 0 || static_cast<size_t>(got) == wanted) continue;
      size_t ends = offset + static_cast<size_t>(got), known = end;
      while (ends < known && !end.compare_exchange_weak(known, ends)) {
      }
    }
  };
  constexpr size_t kWorthAThread = size_t{16} << 20;
  size_t helpers = std::min<size_t>(size / kWorthAThread,
                                    std::max(1U, std::thread::hardware_concurrency()) - 1);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min<size_t>(helpers, 3); ++i) threads.emplace_back(work);
    work();
  }
  if (failed != 0) {
    errno = failed;
    return fail_errno("it cannot be read");
  }
  size_ = end;
  return {};
}

Result<void> FileCopy::into_file(int fd, size_t size) {
  auto made = file_door().temporary();
  if (!made) return std::unexpected(made.error());
  std::vector<char> piece(kPiece);
  while (size_ < size) {
    ssize_t got = read_at(fd, piece.data(), std::min(kPiece, size - size_), size_);
    if (got < 0) return fail_errno("it cannot be read");
    if (got == 0) break;
    for (ssize_t done = 0; done < got;) {
      ssize_t wrote = ::pwrite(made->get(), piece.data() + done, static_cast<size_t>(got - done),
                               static_cast<off_t>(size_) + done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return fail_errno("no room for a copy of {} MB", size >> 20);
      done += wrote;
    }
    size_ += static_cast<size_t>(got);
  }
  if (size_ == 0) return {};
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, made->get(), 0);
  if (at == MAP_FAILED) return too_large(size_);
  at_ = static_cast<char*>(at);
  mapped_ = size_;
  return {};
}

// Slice by slice: giving back a large file's pages at once would keep every other thread of the
// process from mapping memory until it is done.
FileCopy::~FileCopy() {
  constexpr size_t kSlice = size_t{2} << 20;
  for (size_t at = 0; at < mapped_; at += kSlice)
    ::madvise(at_ + at, std::min(kSlice, mapped_ - at), MADV_DONTNEED);
  if (mapped_ > 0) ::munmap(at_, mapped_);
}

}  // namespace assay::formats
