#include "base/file_door.h"

#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/private_file.h"

namespace assay {
namespace {

FileDoor* chosen = nullptr;

std::string link_of(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

Result<void> check_kind(const struct stat& status, const std::string& path, Purpose purpose) {
  if (S_ISDIR(status.st_mode))
    return fail("{} is a directory{}", path, purpose == Purpose::run ? ", not a run file" : "");
  if (purpose != Purpose::capture && !S_ISREG(status.st_mode))
    return fail("{} is not a regular file", path);
  return {};
}

class DirectDoor final : public FileDoor {
 public:
  // Looked at before it is opened: to open a device or a pipe may do something.
  Result<FoundFile> open(const std::string& path, Purpose purpose) override {
    bool follows = purpose != Purpose::journal && purpose != Purpose::cache;
    int flags = O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW);
    UniqueFd place(::open(path.c_str(), flags));
    struct stat status {};
    if (!place.valid() || ::fstat(place.get(), &status) != 0)
      return fail_errno("cannot open {}", path);
    if (auto kind = check_kind(status, path, purpose); !kind) return std::unexpected(kind.error());
    FoundFile found;
    found.owner = status.st_uid;
    found.fd = UniqueFd(::open(link_of(place.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!found.fd.valid() && purpose != Purpose::journal) {
      auto failed = fail_errno("cannot read {}", path);
      if (failed.error().code == EACCES && purpose == Purpose::run)
        failed.error().remedy = "read it as its owner, or have the owner pass it on (chown, chmod)";
      return failed;
    }
    std::error_code unknown;
    found.real_path = std::filesystem::read_symlink(link_of(place.get()), unknown).string();
    return found;
  }

  Result<NewFile> create(const std::string& path, Existing existing) override {
    return make_beside(path, existing);
  }

  Result<UniqueFd> temporary() override {
    const char* chosen_folder = std::getenv("TMPDIR");
    for (const char* folder : {chosen_folder, "/var/tmp", "/tmp"}) {
      if (folder == nullptr || *folder != '/') continue;
      UniqueFd fd(::open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600));
      if (fd.valid()) return fd;
      // Not every file system has files without a name.
      std::string name = std::string(folder) + "/assay-XXXXXX";
      fd = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
      if (fd.valid()) ::unlink(name.c_str());
      if (fd.valid()) return fd;
    }
    auto failed = fail_errno("no temporary file can be made");
    failed.error().remedy = "set TMPDIR to a directory that can be written to";
    return failed;
  }
};

}  // namespace

FileDoor& direct_door() {
  static DirectDoor door;
  return door;
}

FileDoor& file_door() {
  return chosen != nullptr ? *chosen : direct_door();
}

void set_file_door(FileDoor* door) {
  chosen = door;
}

}  // namespace assay
