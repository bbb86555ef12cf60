#include "os/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace assay::os {

Result<UniqueFd> open_regular(const std::string& path, Links links) {
  int flags = O_PATH | O_CLOEXEC | (links == Links::refused ? O_NOFOLLOW : 0);
  return open_regular(UniqueFd(::open(path.c_str(), flags)), path);
}

Result<UniqueFd> open_regular(UniqueFd handle, const std::string& shown) {
  if (!handle.valid()) return fail_errno("cannot open {}", shown);
  struct stat st {};
  if (::fstat(handle.get(), &st) != 0) return fail_errno("cannot stat {}", shown);
  if (!S_ISREG(st.st_mode)) return fail("{} is not a regular file", shown);
  std::string link = fmt::format("/proc/self/fd/{}", handle.get());
  UniqueFd fd(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return fail_errno("cannot open {}", shown);
  return fd;
}

}  // namespace assay::os
