#include "session/heap/channel_directory.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/private_file.h"
#include "capture/heap/heap_channel.h"
#include "os/process/procfs.h"

namespace assay::session {
namespace {

namespace fs = std::filesystem;

// "4711" of "4711.heap".
pid_t pid_of_channel(const std::string& name) {
  pid_t pid = 0;
  auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), pid);
  bool whole = status == std::errc() && std::string_view(end) == ".heap";
  return whole && pid > 0 ? pid : 0;
}

// For the channel of at least one process.
bool has_room(const std::string& directory) {
  constexpr uint64_t kRest = 64 << 10;
  std::string path = directory + "/room";
  auto file = PrivateFile::make_at(path);
  auto bytes = static_cast<off_t>(ChannelDirectory::ring_bytes() + kRest);
  bool fits = file && (::fallocate(file->get(), 0, 0, bytes) == 0 || errno == EOPNOTSUPP);
  ::unlink(path.c_str());
  return fits;
}

}  // namespace

uint64_t ChannelDirectory::ring_bytes() {
  constexpr uint64_t kPerCore = 128 << 10, kLeast = 1 << 20;
  uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return std::clamp(std::bit_ceil(cores * kPerCore), kLeast,
                    capture::HeapChannel::kDefaultRingBytes);
}

Result<void> ChannelDirectory::make() {
  std::error_code failed;
  std::string elsewhere = fs::temp_directory_path(failed).string(), why;
  for (const std::string& folder : {std::string("/dev/shm"), elsewhere}) {
    std::string made = folder + "/assay-heap-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) {
      why = std::strerror(errno);
      continue;
    }
    if (has_room(made)) {
      path_ = made;
      if (auto own = os::ProcFs().stat(::getpid())) began_ticks_ = own->start_ticks;
      return {};
    }
    why = "no space left";
    fs::remove_all(made, failed);
  }
  return fail_with_remedy(
      fmt::format("there is no room for heap channels in /dev/shm and in {}: {}", elsewhere, why),
      "free some space there, or set TMPDIR to a directory with more", ENOSPC);
}

ChannelDirectory::~ChannelDirectory() {
  std::error_code ignored;
  if (is_made()) fs::remove_all(path_, ignored);
}

std::string ChannelDirectory::place() const {
  return fs::path(path_).parent_path().string();
}

std::vector<ChannelDirectory::File> ChannelDirectory::files() const {
  std::vector<File> found;
  std::error_code failed;
  if (!is_made()) return found;
  os::ProcFs proc;
  for (const auto& entry : fs::directory_iterator(path_, failed)) {
    pid_t pid = pid_of_channel(entry.path().filename().string());
    struct stat status {};
    if (pid == 0 || ::lstat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    auto stat = proc.stat(pid);
    if (stat && stat->start_ticks < began_ticks_) continue;
    found.push_back({pid, entry.path().string(), status.st_ino, status.st_size == 0});
  }
  return found;
}

}  // namespace assay::session
