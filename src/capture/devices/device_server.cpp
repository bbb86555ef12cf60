#include "capture/devices/device_server.h"

#include <sys/auxv.h>

#include "capture/devices/nvml.h"
#include "os/sandbox/channel.h"
#include "os/sandbox/confine.h"
#include "os/sandbox/trusted_library.h"

namespace assay::capture {
namespace {

constexpr uint64_t kOpenFiles = 256;
constexpr const char* kNvml = "libnvidia-ml.so.1";

Result<std::unique_ptr<Nvml>> load(const std::string& given) {
  if (!given.empty()) {
    if (::getauxval(AT_SECURE) != 0) return fail("a library of tests is refused with privileges");
    return Nvml::load(given);
  }
  auto path = os::find_trusted_library(kNvml);
  if (!path) return std::unexpected(path.error());
  return Nvml::load(*path);
}

}  // namespace

int serve_devices(int channel_descriptor, const std::string& library) {
  os::Channel channel{UniqueFd(channel_descriptor)};
  auto without_rights = os::become_nobody_for_good(kOpenFiles);
  if (!without_rights) return 1;
  std::unique_ptr<Nvml> nvml;
  while (channel.receive()) {
    DeviceAnswer answer;
    if (!nvml) {
      auto loaded = load(library);
      if (loaded) {
        nvml = std::move(*loaded);
      } else {
        answer.problem = loaded.error().what;
      }
    }
    answer.time = monotonic_ns();
    if (nvml) answer.devices = nvml->read();
    if (!channel.send(to_message(answer))) break;
  }
  return 0;
}

}  // namespace assay::capture
