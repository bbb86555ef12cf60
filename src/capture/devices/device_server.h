// serve_devices(): the process that asks the vendors' libraries what accelerators do.
//
// A driver's library may hang, crash or make threads, so it is not loaded into the process that
// records. This process becomes `nobody` without capabilities before it loads anything; then it
// answers each message on its channel with a DeviceAnswer, until the channel closes. Only a library
// of the system's is loaded (os/sandbox/trusted_library.h). Tests name another one, which a program
// that has more rights than its user (set-user-id, file capabilities) refuses.
#pragma once

#include <string>

namespace assay::capture {

// The word on the command line that makes a program this process.
inline constexpr const char* kDevicesWord = "__devices";

// `library`: of tests; empty: the system's. Never returns before the channel closes; the result is
// the exit status.
int serve_devices(int channel_descriptor, const std::string& library = "");

}  // namespace assay::capture
