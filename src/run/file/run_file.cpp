#include "run/file/run_file.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/private_file.h"

namespace assay::run {
namespace {

// The bytes that SQLite locks: one for who waits to write, one for who will, many for readers.
constexpr off_t kLockBytes = 0x40000000, kReaderBytes = kLockBytes + 2;
constexpr off_t kReaderCount = 510, kLockCount = kReaderCount + 2;

struct flock lock_of(short type, off_t begin, off_t count) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = begin;
  lock.l_len = count;
  return lock;
}

// Looked at before it is opened: to open a device or a pipe may do something.
Result<UniqueFd> open_regular(const std::string& path, struct stat& status) {
  UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.valid() || ::fstat(place.get(), &status) != 0)
    return fail_errno("cannot open {}", path);
  if (S_ISDIR(status.st_mode)) return fail("{} is a directory, not a run file", path);
  if (!S_ISREG(status.st_mode)) return fail("{} is not a regular file", path);
  if (status.st_size == 0) return fail("{} is empty: it holds no run", path);
  UniqueFd fd(::open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    auto failed = fail_errno("cannot read {}", path);
    if (failed.error().code == EACCES)
      failed.error().remedy = "read it as its owner, or have the owner pass it on (chown, chmod)";
    return failed;
  }
  return fd;
}

}  // namespace

Result<std::shared_ptr<RunFile>> RunFile::open(const std::string& path) {
  struct stat status {};
  auto fd = open_regular(path, status);
  if (!fd) return std::unexpected(fd.error());
  std::shared_ptr<RunFile> file(new RunFile());
  file->fd_ = std::move(*fd);
  file->bytes_ = static_cast<uint64_t>(status.st_size);
  // Where locks are not known, as on some network disks, there is nobody to ask.
  struct flock shared = lock_of(F_RDLCK, kReaderBytes, kReaderCount);
  if (::fcntl(file->fd_.get(), F_OFD_SETLK, &shared) != 0 && (errno == EAGAIN || errno == EACCES)) {
    return fail_with_remedy(fmt::format("{} is still being written by a running capture", path),
                            "wait until the capture ends, or end it with Ctrl-C", EBUSY);
  }
  if (auto found = file->find_journal(path, status.st_uid); !found)
    return std::unexpected(found.error());
  return file;
}

// Beside the file itself, wherever the name that we were given leads.
Result<void> RunFile::find_journal(const std::string& path, uid_t owner) {
  std::error_code failed;
  std::filesystem::path real =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd_.get()), failed);
  if (failed) return {};
  UniqueFd folder(::open(real.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return {};
  auto journal = RollbackJournal::read(folder.get(), real.filename().string() + "-journal",
                                       {path, owner, bytes_, page_bytes()});
  if (!journal) return std::unexpected(journal.error());
  journal_ = std::move(*journal);
  return {};
}

uint64_t RunFile::page_bytes() const {
  constexpr size_t kPageSizeAt = 16;
  constexpr std::string_view kBegin{"SQLite format 3\0", 16};
  std::array<char, kPageSizeAt + 2> header{};
  if (::pread(fd_.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
      !std::string_view(header.data(), header.size()).starts_with(kBegin))
    return 0;
  auto high = static_cast<unsigned char>(header[kPageSizeAt]);
  auto low = static_cast<unsigned char>(header[kPageSizeAt + 1]);
  uint64_t size = uint64_t{high} << 8 | low;
  return size == 1 ? 65536 : size;
}

std::shared_ptr<RunFile> RunFile::adopt(UniqueFd fd, std::string journal_path) {
  std::shared_ptr<RunFile> file(new RunFile());
  file->fd_ = std::move(fd);
  file->writable_ = true;
  file->journal_path_ = std::move(journal_path);
  return file;
}

bool RunFile::is_being_written(const std::string& path) {
  struct stat status {};
  auto fd = open_regular(path, status);
  if (!fd) return false;
  struct flock shared = lock_of(F_RDLCK, kReaderBytes, kReaderCount);
  return ::fcntl(fd->get(), F_OFD_GETLK, &shared) == 0 && shared.l_type != F_UNLCK;
}

bool RunFile::lock_for_writing() const {
  struct flock alone = lock_of(F_WRLCK, kLockBytes, kLockCount);
  return ::fcntl(fd_.get(), F_OFD_SETLK, &alone) == 0 || (errno != EAGAIN && errno != EACCES);
}

uint64_t RunFile::bytes() const {
  if (journal_) return journal_->run_bytes();
  if (!writable_) return bytes_;
  struct stat status {};
  return ::fstat(fd_.get(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

// SQLite asks for a page, or for a part of one.
ssize_t RunFile::read(void* into, size_t size, uint64_t offset) const {
  int fd = fd_.get();
  if (journal_) {
    if (offset >= bytes()) return 0;
    uint64_t page = offset / journal_->page_bytes(), within = offset % journal_->page_bytes();
    size = std::min<uint64_t>(size, journal_->page_bytes() - within);
    if (auto older = journal_->find(page + 1)) {
      fd = journal_->fd();
      offset = *older + within;
    }
  }
  size_t done = 0;
  while (done < size) {
    ssize_t got = ::pread(fd, static_cast<char*>(into) + done, size - done,
                          static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

int RunFile::open_journal() {
  if (!own_journal_.valid() && journal_path_.empty())
    own_journal_ = UniqueFd(::memfd_create("assay-journal", MFD_CLOEXEC));
  // Whatever stands there is not ours: this run has just been made. A link is removed, not
  // followed.
  constexpr int kTries = 8;
  for (int i = 0; i < kTries && !own_journal_.valid(); ++i) {
    auto made = PrivateFile::make_at(journal_path_);
    if (made) {
      own_journal_ = std::move(*made);
    } else if (made.error().code != EEXIST || ::unlink(journal_path_.c_str()) != 0) {
      errno = made.error().code;
      break;
    }
  }
  return own_journal_.valid() ? ::fcntl(own_journal_.get(), F_DUPFD_CLOEXEC, 0) : -1;
}

bool RunFile::sync() const {
  return sync_file(fd_.get());
}

// The run is changed after this: from then on nobody can read it without its journal.
bool RunFile::sync_journal() {
  if (!sync_file(own_journal_.get())) return false;
  if (!journal_is_named_)
    journal_is_named_ = journal_path_.empty() || sync_folder_of(journal_path_);
  return journal_is_named_;
}

void RunFile::remove_journal() {
  struct stat ours {
  }, there{};
  bool is_ours = own_journal_.valid() && !journal_path_.empty() &&
                 ::fstat(own_journal_.get(), &ours) == 0 &&
                 ::lstat(journal_path_.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
                 ours.st_ino == there.st_ino;
  if (is_ours) ::unlink(journal_path_.c_str());
  own_journal_.reset();
  journal_is_named_ = false;
}

void RunFile::end_writing() {
  struct stat status {};
  if (own_journal_.valid() && ::fstat(own_journal_.get(), &status) == 0 && status.st_size == 0)
    remove_journal();
  struct flock none = lock_of(F_UNLCK, kLockBytes, kLockCount);
  (void)::fcntl(fd_.get(), F_OFD_SETLK, &none);
}

}  // namespace assay::run
