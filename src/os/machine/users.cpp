#include "os/machine/users.h"

#include <fmt/format.h>
#include <pwd.h>

namespace assay::os {

std::string user_name(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  char names[4096];
  if (::getpwuid_r(uid, &entry, names, sizeof names, &found) == 0 && found && found->pw_name) {
    return found->pw_name;
  }
  return fmt::format("uid {}", uid);
}

}  // namespace assay::os
