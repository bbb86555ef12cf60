#include "formats/input.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "formats/gzip.h"

namespace assay::formats {
namespace {

constexpr size_t kMostUnpacked = size_t{4} << 30;

Result<std::string> read_stream(int fd, const std::string& path) {
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("cannot read {}", path);
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
    if (bytes.size() > kMostUnpacked) return fail("{}: more than {} bytes", path, kMostUnpacked);
  }
}

}  // namespace

Result<Input> Input::open(const std::string& path) {
  Input input;
  input.name_ = path == "-" ? "standard input" : path;
  UniqueFd fd(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("cannot open {}", path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot open {}", path);
  if (S_ISDIR(status.st_mode)) return fail("{} is a directory", path);
  if (S_ISREG(status.st_mode) && status.st_size > 0) {
    auto size = static_cast<size_t>(status.st_size);
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (at == MAP_FAILED) return fail_errno("cannot read {}", path);
    input.mapped_ = {static_cast<const char*>(at), size};
    return input;
  }
  auto bytes = read_stream(fd.get(), input.name_);
  if (!bytes) return std::unexpected(bytes.error());
  input.owned_ = std::move(*bytes);
  return input;
}

Input Input::of_bytes(std::string name, std::string bytes) {
  Input input;
  input.name_ = std::move(name);
  input.owned_ = std::move(bytes);
  return input;
}

Input::Input(Input&& other) noexcept
    : name_(std::move(other.name_)),
      mapped_(std::exchange(other.mapped_, {})),
      owned_(std::move(other.owned_)) {}

Input::~Input() {
  unmap();
}

// Slice by slice: giving back a large file's pages at once would keep every other thread of the
// process from mapping memory until it is done.
void Input::unmap() {
  constexpr size_t kSlice = size_t{2} << 20;
  char* begin = const_cast<char*>(mapped_.data());
  for (size_t at = 0; at < mapped_.size(); at += kSlice) {
    ::madvise(begin + at, std::min(kSlice, mapped_.size() - at), MADV_DONTNEED);
  }
  if (!mapped_.empty()) ::munmap(begin, mapped_.size());
  mapped_ = {};
}

Result<void> Input::unpack() {
  if (!is_gzip(bytes())) return {};
  auto plain = gunzip(bytes(), kMostUnpacked);
  if (!plain) return fail("{}: {}", name_, plain.error().what);
  unmap();
  owned_ = std::move(*plain);
  return {};
}

ReadAhead::ReadAhead(const Input& input) {
  // What is small is read before a thread has started.
  if (!input.is_mapped() || input.bytes().size() < 8 * kStepBytes) return;
  thread_ = std::jthread([this, bytes = input.bytes()] { touch_pages(bytes); });
}

ReadAhead::~ReadAhead() {
  ended_ = true;
  at_.fetch_add(1);  // so that a wait for it ends
  at_.notify_one();
}

void ReadAhead::touch_pages(std::string_view bytes) {
  for (size_t next = 0; next < bytes.size();) {
    size_t reader = at_;
    if (ended_) return;  // told before the last at_, so it is not waited for in vain
    // Where the reader is already, it has the pages itself.
    next = std::max(next, reader / kStepBytes * kStepBytes + kStepBytes);
    if (next >= bytes.size()) return;
    if (next > reader + kAheadBytes) {
      at_.wait(reader);
      continue;
    }
    size_t size = std::min(kStepBytes, bytes.size() - next);
    void* at = const_cast<char*>(bytes.data() + next);
    // A kernel before 5.14 does not know it; a file that shrank has no such pages.
    if (::madvise(at, size, MADV_POPULATE_READ) != 0) return;
    next += size;
  }
}

}  // namespace assay::formats
