#include "run/file/run_file.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file_door.h"
#include "base/file_group.h"
#include "base/private_file.h"

namespace assay::run {
namespace {

// The bytes that SQLite locks: one for a waiting writer, one for the next writer, many for readers.
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

}  // namespace

Result<std::shared_ptr<RunFile>> RunFile::open(const std::string& path) {
  auto found = file_door().open(path, Purpose::run);
  if (!found) return std::unexpected(found.error());
  auto file = read_back(std::move(found->fd), path);
  if (!file) return file;
  if (auto journal = (*file)->find_journal(path, found->real_path); !journal)
    return std::unexpected(journal.error());
  return file;
}

Result<std::shared_ptr<RunFile>> RunFile::read_back(UniqueFd fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot open {}", path);
  if (status.st_size == 0) return fail("{} is empty: it holds no run", path);
  std::shared_ptr<RunFile> file(new RunFile());
  file->fd_ = std::move(fd);
  file->bytes_ = static_cast<uint64_t>(status.st_size);
  file->owner_ = status.st_uid;
  // Some network disks have no locks: then it cannot be told whether the run is being written.
  struct flock shared = lock_of(F_RDLCK, kReaderBytes, kReaderCount);
  if (::fcntl(file->fd_.get(), F_OFD_SETLK, &shared) != 0 && (errno == EAGAIN || errno == EACCES)) {
    return fail_with_remedy(fmt::format("{} is still being written by a running capture", path),
                            "wait until the capture ends, or end it with Ctrl-C", EBUSY);
  }
  return file;
}

// Beside the file itself, wherever the name that we were given leads.
Result<void> RunFile::find_journal(const std::string& path, const std::string& real_path) {
  if (real_path.empty()) return {};
  auto found = file_door().open(real_path + "-journal", Purpose::journal);
  auto journal = RollbackJournal::read(std::move(found), {path, owner_, bytes_, page_bytes()});
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
  auto found = file_door().open(path, Purpose::run);
  if (!found) return false;
  struct flock shared = lock_of(F_RDLCK, kReaderBytes, kReaderCount);
  return ::fcntl(found->fd.get(), F_OFD_GETLK, &shared) == 0 && shared.l_type != F_UNLCK;
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
      // Who may read the run must be able to read it after a crash as well.
      if (has_file_group()) (void)set_access(made->get(), journal_path_);
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
