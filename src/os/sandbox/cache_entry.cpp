#include "os/sandbox/cache_entry.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/regular_file.h"

namespace assay::os {
namespace {

constexpr size_t kLongestName = 255;

bool made_of(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

bool is_hex_name(std::string_view text) {
  return made_of(text, "0123456789abcdef-");
}

// "1f-2a.v3"
bool is_table_name(std::string_view name) {
  size_t dot = name.find(".v");
  return dot != std::string_view::npos && is_hex_name(name.substr(0, dot)) &&
         made_of(name.substr(dot + 2), "0123456789");
}

// "kernel-1b4e28ba-2fa1.symbols"
bool is_kernel_name(std::string_view name) {
  constexpr std::string_view kPrefix = "kernel-", kSuffix = ".symbols";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  if (name.size() <= kPrefix.size() + kSuffix.size()) return false;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return is_hex_name(name);
}

// Whether it is the caller's, and only the caller (and root) can write to it.
bool is_ours(int fd, mode_t kind) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == kind &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

UniqueFd open_folder(int parent, const std::string& name) {
  UniqueFd fd(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.valid() && !is_ours(fd.get(), S_IFDIR)) fd = UniqueFd();
  return fd;
}

}  // namespace

Result<FoundFile> open_cache_entry(const std::string& folder, const std::string& path) {
  auto refused = [&] {
    return fail_with_remedy(fmt::format("{} is no entry of the cache", path), "", EACCES);
  };
  if (folder.empty() || !path.starts_with(folder + "/")) return refused();
  std::string name = path.substr(folder.size() + 1);
  constexpr std::string_view kTables = "unwind/";
  bool is_table = name.starts_with(kTables);
  if (is_table) name.erase(0, kTables.size());
  if (name.size() > kLongestName) return refused();
  if (is_table ? !is_table_name(name) : !is_kernel_name(name)) return refused();
  UniqueFd place = open_folder(AT_FDCWD, folder);
  if (place.valid() && is_table) place = open_folder(place.get(), "unwind");
  if (!place.valid()) return refused();
  UniqueFd handle(::openat(place.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!handle.valid()) return fail_errno("cannot open {}", path);
  if (!is_ours(handle.get(), S_IFREG)) return refused();
  auto fd = open_regular(std::move(handle), path);
  if (!fd) return std::unexpected(fd.error());
  return FoundFile{std::move(*fd), "", ::geteuid()};
}

}  // namespace assay::os
