#include "base/private_file.h"

#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/file_group.h"

namespace assay {
namespace {

constexpr mode_t kOwnerAlone = 0600;
constexpr int kNewFile = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
constexpr int kTries = 8;

struct Place {
  UniqueFd directory;
  std::string name;
};

Result<Place> find_place(const std::string& path) {
  std::filesystem::path whole(path);
  Place place;
  place.name = whole.filename().string();
  if (place.name.empty() || place.name == "." || place.name == "..")
    return fail("'{}' is no name for a file", path);
  std::string folder = whole.parent_path().string();
  if (folder.empty()) folder = ".";
  place.directory = UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.directory.valid()) return fail_errno("cannot write {}: {}", path, folder);
  return place;
}

Result<void> check_replaceable(const Place& place, const std::string& path) {
  struct stat status {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("cannot write {}", path);
  }
  if (S_ISREG(status.st_mode)) return {};
  const char* kind = S_ISLNK(status.st_mode)   ? "is a symbolic link"
                     : S_ISDIR(status.st_mode) ? "is a directory"
                                               : "exists and is not a regular file";
  return fail_with_remedy(fmt::format("{} {}: it is not replaced", path, kind),
                          "choose another name with -o", EEXIST);
}

std::string random_suffix() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<uint64_t>(::getpid());
  return fmt::format("{:016x}", number);
}

class FileBeside final : public FileInTheMaking {
 public:
  FileBeside(std::string path, Place place, std::string beside, Existing existing)
      : path_(std::move(path)),
        place_(std::move(place)),
        beside_(std::move(beside)),
        existing_(existing) {}
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  ~FileBeside() override {
    if (!beside_.empty()) ::unlinkat(place_.directory.get(), beside_.c_str(), 0);
  }

  Result<void> commit() override {
    if (auto moved = move_into_place(); !moved) return moved;
    if (!sync_folder(place_.directory.get())) return fail_errno("cannot write {}", path_);
    return {};
  }

 private:
  Result<void> move_into_place() {
    int folder = place_.directory.get();
    const char* name = place_.name.c_str();
    if (existing_ == Existing::refuse) {
      // link() refuses to replace, also when another process was quicker; not every file system
      // has it.
      if (::linkat(folder, beside_.c_str(), folder, name, 0) == 0) {
        ::unlinkat(folder, beside_.c_str(), 0);
        beside_.clear();
        return {};
      }
      if (errno == EEXIST) return fail_with_remedy(path_ + " exists already", "", EEXIST);
      struct stat status {};
      if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return fail_with_remedy(path_ + " exists already", "", EEXIST);
    }
    if (::renameat(folder, beside_.c_str(), folder, name) != 0)
      return fail_errno("cannot write {}", path_);
    beside_.clear();
    return {};
  }

  std::string path_;  // as it was given
  Place place_;
  std::string beside_;  // the last part of the file beside it; empty: it is in its place
  Existing existing_;
};

// Of a disk that fails or is full; everything else is a file system without this call.
bool is_failure_of_disk(int code) {
  return code == EIO || code == ENOSPC || code == EDQUOT;
}

}  // namespace

bool sync_file(int fd) {
  int done = -1;
  do {
    done = ::fdatasync(fd);
  } while (done != 0 && errno == EINTR);
  return done == 0;
}

bool sync_folder(int folder) {
  UniqueFd fd(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return true;
  int done = -1;
  do {
    done = ::fsync(fd.get());
  } while (done != 0 && errno == EINTR);
  return done == 0 || !is_failure_of_disk(errno);
}

bool sync_folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  UniqueFd fd(::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return !fd.valid() || sync_folder(fd.get());
}

Result<void> PrivateFile::check_place(const std::string& path) {
  auto place = find_place(path);
  if (!place) return std::unexpected(place.error());
  return check_replaceable(*place, path);
}

Result<UniqueFd> PrivateFile::make_at(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), kNewFile, kOwnerAlone));
  if (!fd.valid() || ::fchmod(fd.get(), kOwnerAlone) != 0)
    return fail_errno("cannot write {}", path);
  return fd;
}

Result<PrivateFile> PrivateFile::create(const std::string& path, Existing existing) {
  auto made = file_door().create(path, existing);
  if (!made) return std::unexpected(made.error());
  PrivateFile file;
  file.path_ = path;
  file.fd_ = std::move(made->fd);
  file.making_ = std::move(made->making);
  return file;
}

Result<void> PrivateFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t wrote = ::write(fd_.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail_errno("cannot write {}", path_);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

Result<void> PrivateFile::commit() {
  if (!sync_file(fd_.get())) return fail_errno("cannot write {}", path_);
  return making_->commit();
}

Result<NewFile> make_beside(const std::string& path, Existing existing) {
  auto place = find_place(path);
  if (!place) return std::unexpected(place.error());
  if (auto fine = check_replaceable(*place, path); !fine) return std::unexpected(fine.error());
  NewFile file;
  std::string beside;
  for (int i = 0; i < kTries && !file.fd.valid(); ++i) {
    beside = fmt::format("{}.new-{}", place->name, random_suffix());
    file.fd = UniqueFd(::openat(place->directory.get(), beside.c_str(), kNewFile, kOwnerAlone));
    if (!file.fd.valid() && errno != EEXIST) break;
  }
  if (!file.fd.valid()) return fail_errno("cannot write {}", path);
  int fd = file.fd.get();
  file.making = std::make_unique<FileBeside>(path, std::move(*place), beside, existing);
  if (auto set = set_access(fd, path); !set) return std::unexpected(set.error());
  return file;
}

}  // namespace assay
