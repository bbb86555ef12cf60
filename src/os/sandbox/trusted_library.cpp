#include "os/sandbox/trusted_library.h"

#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

namespace assay::os {
namespace {

constexpr const char* kFolders[] {
#if defined(__x86_64__)
  "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
  "/usr/lib/aarch64-linux-gnu",
#endif
      "/usr/lib64", "/usr/lib", "/lib64", "/lib",
      "/usr/local/nvidia/lib64",  // where hosts of containers put the driver
      "/run/opengl-driver/lib",   // NixOS
};

Result<void> check_one(const std::string& path, bool is_folder) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return fail_errno("{} cannot be looked at", path);
  if (is_folder ? !S_ISDIR(about.st_mode) : !S_ISREG(about.st_mode))
    return fail("{} is not a {}", path, is_folder ? "folder" : "regular file");
  if (about.st_uid != 0) return fail("{} does not belong to root", path);
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail("{} may be changed by others than root", path);
  return {};
}

}  // namespace

std::span<const char* const> system_library_folders() {
  return kFolders;
}

Result<std::string> check_trusted_file(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                       &std::free);
  if (!resolved) return fail_errno("{} cannot be found", path);
  std::string real(resolved.get());
  for (size_t at = 0; at != std::string::npos; at = real.find('/', at + 1)) {
    auto folder = check_one(at == 0 ? "/" : real.substr(0, at), true);
    if (!folder) return std::unexpected(folder.error());
  }
  if (auto file = check_one(real, false); !file) return std::unexpected(file.error());
  return real;
}

Result<std::string> find_trusted_library(const std::string& name,
                                         std::span<const char* const> folders) {
  std::optional<Error> refused;
  for (const char* folder : folders) {
    std::string path = fmt::format("{}/{}", folder, name);
    if (::access(path.c_str(), F_OK) != 0) continue;
    auto trusted = check_trusted_file(path);
    if (trusted) return trusted;
    if (!refused) refused = trusted.error();
  }
  if (refused) return std::unexpected(*refused);
  errno = ENOENT;
  return fail_errno("no folder of the system's has {}", name);
}

}  // namespace assay::os
