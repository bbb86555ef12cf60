// FaultyDisk: a folder whose disk fails at a chosen step, or loses power there. For tests only.
//
// This file takes the place of the C library's calls that change files (pwrite, ftruncate,
// fdatasync, open, linkat, …) for the whole test program: include it in one test. While a
// FaultyDisk lives, each call that changes something in its folder is a step: it is counted,
// recorded with its bytes, and may fail. Everything else goes to the kernel as it is.
// Threads: one FaultyDisk at a time, and the thread that made it alone writes to the folder.
#pragma once

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::run {

struct DiskStep {
  enum class Kind : uint8_t { write, truncate, sync, create, name, unname, sync_names };
  Kind kind = Kind::write;
  ino_t file = 0;
  uint64_t at = 0;                // write: the offset; truncate: the size
  std::string bytes;              // write
  std::string name, former_name;  // name (a rename or a new link), unname, create
};

struct Fault {
  enum class Kind : uint8_t { no_space, io_error, short_write };
  Kind kind = Kind::no_space;
  bool stays = false;  // the steps after it fail as well
  size_t step = 0;
};

class FaultyDisk {
 public:
  explicit FaultyDisk(std::string folder, std::optional<Fault> fault = {})
      : folder_(std::move(folder)), fault_(fault) {
    struct stat status {};
    if (::stat(folder_.c_str(), &status) == 0) folder_file_ = status.st_ino;
    current() = this;
  }
  ~FaultyDisk() { current() = nullptr; }
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  static FaultyDisk*& current() {
    static FaultyDisk* disk = nullptr;
    return disk;
  }

  const std::vector<DiskStep>& steps() const { return steps_; }
  bool has_failed() const { return failed_; }

  // The file that a descriptor is open on, when it is one of the folder's.
  ino_t file_of(int fd) const {
    struct stat status {};
    if (::fstat(fd, &status) != 0) return 0;
    return files_.contains(status.st_ino) || status.st_ino == folder_file_ ? status.st_ino : 0;
  }
  bool is_folder(ino_t file) const { return file == folder_file_; }
  // The last part of a path that leads into the folder; else nothing.
  std::string name_in_folder(int at, const char* path) const {
    std::string_view text(path);
    if (text.starts_with(folder_ + "/")) return std::string(text.substr(folder_.size() + 1));
    bool relative = at != AT_FDCWD && text.find('/') == text.npos && is_folder(file_of(at));
    return relative ? std::string(text) : "";
  }
  ino_t file_named(const std::string& name) const {
    struct stat status {};
    return ::lstat((folder_ + "/" + name).c_str(), &status) == 0 ? status.st_ino : 0;
  }

  // Before a step is done: false when it fails, with errno. Of a write, `size` may become less.
  bool begin(DiskStep::Kind kind, size_t* size = nullptr) {
    size_t index = steps_.size() + refused_;
    bool here = fault_ && (index == fault_->step || (fault_->stays && index > fault_->step));
    if (!here || !concerns(kind)) return true;
    bool is_short = fault_->kind == Fault::Kind::short_write;
    if (is_short && !failed_) {
      failed_ = size != nullptr && *size > 1;
      if (failed_) *size /= 2;
      return true;
    }
    if (is_short && !fault_->stays) return true;
    failed_ = true;
    ++refused_;
    errno = fault_->kind == Fault::Kind::io_error ? EIO : ENOSPC;
    return false;
  }
  void done(DiskStep step) {
    if (step.kind == DiskStep::Kind::create) files_.insert(step.file);
    steps_.push_back(std::move(step));
  }

 private:
  // A full disk still lets files be cut and removed.
  bool concerns(DiskStep::Kind kind) const {
    bool frees = kind == DiskStep::Kind::truncate || kind == DiskStep::Kind::unname;
    return fault_->kind == Fault::Kind::io_error || !frees;
  }

  std::string folder_;
  ino_t folder_file_ = 0;
  std::optional<Fault> fault_;
  std::set<ino_t> files_;
  std::vector<DiskStep> steps_;
  size_t refused_ = 0;
  bool failed_ = false;
};

}  // namespace assay::run

extern "C" {

using assay::run::DiskStep;
using assay::run::FaultyDisk;

ssize_t pwrite(int fd, const void* from, size_t size, off_t at) {
  FaultyDisk* disk = FaultyDisk::current();
  ino_t file = disk != nullptr ? disk->file_of(fd) : 0;
  if (file != 0 && !disk->begin(DiskStep::Kind::write, &size)) return -1;
  ssize_t wrote = ::syscall(SYS_pwrite64, fd, from, size, at);
  if (file != 0 && wrote > 0) {
    std::string bytes(static_cast<const char*>(from), static_cast<size_t>(wrote));
    disk->done({DiskStep::Kind::write, file, static_cast<uint64_t>(at), std::move(bytes), "", ""});
  }
  return wrote;
}

int ftruncate(int fd, off_t size) noexcept {
  FaultyDisk* disk = FaultyDisk::current();
  ino_t file = disk != nullptr ? disk->file_of(fd) : 0;
  if (file != 0 && !disk->begin(DiskStep::Kind::truncate)) return -1;
  auto done = static_cast<int>(::syscall(SYS_ftruncate, fd, size));
  if (file != 0 && done == 0)
    disk->done({DiskStep::Kind::truncate, file, static_cast<uint64_t>(size), "", "", ""});
  return done;
}

static int sync_step(int fd, long call) {
  FaultyDisk* disk = FaultyDisk::current();
  ino_t file = disk != nullptr ? disk->file_of(fd) : 0;
  if (file == 0) return static_cast<int>(::syscall(call, fd));
  bool names = disk->is_folder(file);
  auto kind = names ? DiskStep::Kind::sync_names : DiskStep::Kind::sync;
  if (!disk->begin(kind)) return -1;
  disk->done({kind, file, 0, "", "", ""});
  return 0;
}
int fsync(int fd) {
  return sync_step(fd, SYS_fsync);
}
int fdatasync(int fd) {
  return sync_step(fd, SYS_fdatasync);
}

static int open_step(int folder, const char* path, int flags, mode_t mode) {
  FaultyDisk* disk = FaultyDisk::current();
  bool makes = disk != nullptr && (flags & O_CREAT) != 0;
  std::string name = makes ? disk->name_in_folder(folder, path) : "";
  if (!name.empty() && !disk->begin(DiskStep::Kind::create)) return -1;
  auto fd = static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
  if (!name.empty() && fd >= 0)
    disk->done({DiskStep::Kind::create, disk->file_named(name), 0, "", name, ""});
  return fd;
}
int open(const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_step(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  std::va_list rest;
  va_start(rest, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_step(folder, path, flags, mode);
}

int linkat(int from, const char* old_path, int to, const char* new_path, int flags) noexcept {
  FaultyDisk* disk = FaultyDisk::current();
  std::string name = disk != nullptr ? disk->name_in_folder(to, new_path) : "";
  if (!name.empty() && !disk->begin(DiskStep::Kind::name)) return -1;
  auto done = static_cast<int>(::syscall(SYS_linkat, from, old_path, to, new_path, flags));
  if (!name.empty() && done == 0)
    disk->done({DiskStep::Kind::name, disk->file_named(name), 0, "", name, ""});
  return done;
}

int renameat(int from, const char* old_path, int to, const char* new_path) noexcept {
  FaultyDisk* disk = FaultyDisk::current();
  std::string name = disk != nullptr ? disk->name_in_folder(to, new_path) : "";
  std::string former = disk != nullptr ? disk->name_in_folder(from, old_path) : "";
  if (!name.empty() && !disk->begin(DiskStep::Kind::name)) return -1;
  auto done = static_cast<int>(::syscall(SYS_renameat, from, old_path, to, new_path));
  if (!name.empty() && done == 0)
    disk->done({DiskStep::Kind::name, disk->file_named(name), 0, "", name, former});
  return done;
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  FaultyDisk* disk = FaultyDisk::current();
  std::string name = disk != nullptr ? disk->name_in_folder(folder, path) : "";
  if (!name.empty() && !disk->begin(DiskStep::Kind::unname)) return -1;
  auto done = static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
  if (!name.empty() && done == 0) disk->done({DiskStep::Kind::unname, 0, 0, "", name, ""});
  return done;
}
int unlink(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, 0);
}
}
