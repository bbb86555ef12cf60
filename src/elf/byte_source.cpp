#include "elf/byte_source.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay::elf {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxTextBytes = 1 << 20;

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::from_file(UniqueFd fd, const ReadBudget& budget) {
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return fail_errno("cannot stat the file");
  if (!S_ISREG(st.st_mode)) return fail("it is not a regular file");
  auto size = static_cast<uint64_t>(st.st_size);
  if (size == 0) return fail("the file is empty");
  if (size > kMaxFileBytes) return fail("the file claims {} bytes", size);
  std::unique_ptr<ByteSource> source(new ByteSource);
  uint64_t pieces = (size + kPieceBytes - 1) / kPieceBytes;
  // Address space only; pages are made as pieces are read into them. Shared, because a confined reader's limit counts
  // all private memory that could be written, used or not.
  void* at = ::mmap(nullptr, pieces * kPieceBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return fail_errno("no address space for a file of {} bytes", size);
  source->data_ = static_cast<char*>(at);
  source->size_ = size;
  source->reserved_ = pieces * kPieceBytes;
  source->loaded_.assign(pieces, 0);
  source->fd_ = std::move(fd);
  source->budget_ = budget;
  return source;
}

Result<std::unique_ptr<ByteSource>> ByteSource::from_file(int fd, const ReadBudget& budget) {
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!own.valid()) return fail_errno("cannot read the file");
  return from_file(std::move(own), budget);
}

std::unique_ptr<ByteSource> ByteSource::from_memory(std::string bytes) {
  std::unique_ptr<ByteSource> source(new ByteSource);
  source->owned_ = std::move(bytes);
  source->data_ = source->owned_.data();
  source->size_ = source->owned_.size();
  return source;
}

ByteSource::~ByteSource() {
  if (reserved_ > 0) ::munmap(data_, reserved_);
}

bool ByteSource::load(uint64_t first_piece, uint64_t last_piece) {
  uint64_t wanted = 0;
  for (uint64_t piece = first_piece; piece <= last_piece; ++piece) wanted += !loaded_[piece];
  wanted *= kPieceBytes;
  if (wanted > budget_.resident_bytes - std::min(loaded_bytes_, budget_.resident_bytes)) {
    refusal_ =
        fmt::format("{} bytes more of the file would be over the {} bytes that are read of one",
                    wanted, budget_.resident_bytes);
    return false;
  }
  loaded_bytes_ += wanted;
  for (uint64_t piece = first_piece; piece <= last_piece; ++piece) {
    if (loaded_[piece]) continue;
    uint64_t run = piece;
    while (run <= last_piece && !loaded_[run]) loaded_[run++] = 1;
    uint64_t at = piece * kPieceBytes;
    uint64_t end = std::min(run * kPieceBytes, size_);
    while (at < end) {
      ssize_t n = ::pread(fd_.get(), data_ + at, end - at, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      at += static_cast<uint64_t>(n);
    }
    piece = run;
  }
  return true;
}

void ByteSource::release(uint64_t offset, uint64_t size) {
  if (reserved_ == 0 || size == 0 || offset >= size_) return;
  size = std::min(size, size_ - offset);
  uint64_t first = (offset + kPieceBytes - 1) / kPieceBytes;  // whole pieces only
  uint64_t end = (offset + size) / kPieceBytes;
  if (first >= end) return;
  ::madvise(data_ + first * kPieceBytes, (end - first) * kPieceBytes, MADV_REMOVE);
  for (uint64_t piece = first; piece < end; ++piece) {
    if (loaded_[piece]) loaded_bytes_ -= kPieceBytes;
    loaded_[piece] = 0;
  }
}

std::string_view SectionBytes::text(uint64_t at) const {
  // Most names are short: look at one piece's worth first, so that little is read.
  for (uint64_t count : {uint64_t{256}, kMaxTextBytes}) {
    std::string_view bytes = view(at, count);
    size_t end = bytes.find('\0');
    if (end != std::string_view::npos) return bytes.substr(0, end);
    if (bytes.size() < count) return {};
  }
  return {};
}

}  // namespace assay::elf
