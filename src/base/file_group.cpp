#include "base/file_group.h"

#include <charconv>
#include <optional>
#include <vector>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace assay {
namespace {

constexpr mode_t kOwnerAlone = 0600, kOwnerAndGroup = 0640;

std::optional<gid_t> chosen;
std::string chosen_name;

std::optional<gid_t> find_group(const std::string& group) {
  gid_t number = 0;
  const char* end = group.data() + group.size();
  auto parsed = std::from_chars(group.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  std::vector<char> buffer(size_t{64} << 10);
  struct group entry {};
  struct group* found = nullptr;
  if (::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return std::nullopt;
  return found->gr_gid;
}

}  // namespace

Result<void> choose_file_group(const std::string& group) {
  chosen = find_group(group);
  chosen_name = group;
  if (!chosen) return fail_with_remedy(fmt::format("there is no group {}", group), "getent group");
  return {};
}

bool has_file_group() {
  return chosen.has_value();
}

Result<void> set_access(int fd, const std::string& path) {
  if (chosen && ::fchown(fd, static_cast<uid_t>(-1), *chosen) != 0) {
    auto failed = fail_errno("{} cannot be given to the group {}", path, chosen_name);
    failed.error().remedy = "name a group that you are in (id -nG), or run as root";
    return failed;
  }
  // Neither a umask nor a directory's default list decides who may read it.
  if (::fchmod(fd, chosen ? kOwnerAndGroup : kOwnerAlone) != 0)
    return fail_errno("cannot write {}", path);
  return {};
}

}  // namespace assay
