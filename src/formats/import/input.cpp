#include "formats/import/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_door.h"
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
  UniqueFd fd;
  if (path == "-") {
    fd = UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    if (!fd.valid()) return fail_errno("cannot open {}", path);
  } else {
    auto found = file_door().open(path, Purpose::capture);
    if (!found) return std::unexpected(found.error());
    fd = std::move(found->fd);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot open {}", path);
  if (S_ISDIR(status.st_mode)) return fail("{} is a directory", path);
  // A file that somebody has read from already is continued, as a stream.
  if (S_ISREG(status.st_mode) && ::lseek(fd.get(), 0, SEEK_CUR) == 0)
    input.file_bytes_ = static_cast<size_t>(status.st_size);
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

Result<std::string_view> Input::head() {
  if (!is_gzip(bytes())) return bytes();
  auto plain = gunzip_head(bytes(), kHeadBytes);
  if (!plain) return fail("{}: {}", name_, plain.error().what);
  unpacked_head_ = std::move(*plain);
  return unpacked_head_;
}

Result<void> Input::load(size_t most_bytes) {
  if (rest_.valid() && file_bytes_ > owned_.size()) {
    if (auto whole = read_whole(); !whole) return whole;
  } else if (rest_.valid()) {
    auto more = read_stream(rest_.get(), name_, most_bytes, owned_);
    if (!more) return std::unexpected(more.error());
    if (*more) return fail_at(owned_.size(), "more than the {} bytes that are read", most_bytes);
  }
  rest_.reset();
  unpacked_head_.clear();
  if (!is_gzip(bytes())) return {};
  auto plain = gunzip(bytes(), most_bytes);
  if (!plain) return fail("{}: {}", name_, plain.error().what);
  copy_.reset();
  owned_ = std::move(*plain);
  return {};
}

Result<void> Input::read_whole() {
  auto copy = FileCopy::read(rest_.get(), file_bytes_, kMostInMemory);
  if (!copy) {
    return fail_with_remedy(fmt::format("{}: {}", name_, copy.error().what), copy.error().remedy,
                            copy.error().code);
  }
  copy_ = std::move(*copy);
  owned_.clear();
  owned_.shrink_to_fit();
  return {};
}

}  // namespace assay::formats
