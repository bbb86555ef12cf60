// Names of users, for people.
#pragma once

#include <string>

#include <sys/types.h>

namespace assay::os {

// "www-data", or the number in words ("uid 1234") when the user has no name here.
std::string user_name(uid_t uid);

}  // namespace assay::os
