#include "formats/import/input.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/gzip.h"

namespace assay::formats {
namespace {

// Appends until there are `enough`; false at the stream's end.
Result<bool> read_stream(int fd, const std::string& name, size_t enough, std::string& bytes) {
  char buffer[1 << 16];
  while (bytes.size() < enough) {
    ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("cannot read {}", name);
    if (got == 0) return false;
    bytes.append(buffer, static_cast<size_t>(got));
  }
  return true;
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
  auto more = read_stream(fd.get(), input.name_, kHeadBytes, input.owned_);
  if (!more) return std::unexpected(more.error());
  if (*more) input.rest_ = std::move(fd);
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
      owned_(std::move(other.owned_)),
      unpacked_head_(std::move(other.unpacked_head_)),
      rest_(std::move(other.rest_)) {}

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

Result<std::string_view> Input::head() {
  if (!is_gzip(bytes())) return bytes();
  auto plain = gunzip_head(bytes(), kHeadBytes);
  if (!plain) return fail("{}: {}", name_, plain.error().what);
  unpacked_head_ = std::move(*plain);
  return unpacked_head_;
}

Result<void> Input::load(size_t most_bytes) {
  if (rest_.valid()) {
    auto more = read_stream(rest_.get(), name_, most_bytes, owned_);
    if (!more) return std::unexpected(more.error());
    if (*more) return fail_at(owned_.size(), "more than the {} bytes that are read", most_bytes);
    rest_.reset();
  }
  unpacked_head_.clear();
  if (!is_gzip(bytes())) return {};
  auto plain = gunzip(bytes(), most_bytes);
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
