#include "inject/inproc/write/named_code.h"

#include <time.h>

#include "inject/inproc/write/pseudo_frame.h"

namespace assay::inproc {
namespace {

int64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int64_t unix_time_ns() {
  return read_clock(CLOCK_REALTIME);
}
int64_t monotonic_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

bool NamedCode::make(const Profile& profile, Arena& arena) {
  size_t frames = 0;
  for (size_t i = 0; i < profile.count; ++i) frames += profile.samples[i].frames;
  addresses = arena.array<CodeAddress>(frames + 1);
  if (addresses == nullptr || !modules.read(arena)) return false;
  for (size_t i = 0; i < profile.count; ++i) {
    const ProfileSample& sample = profile.samples[i];
    for (uint32_t frame = 0; frame < sample.frames; ++frame)
      addresses[count++].address = profile.code_address(sample, frame);
  }
  count = sort_addresses(addresses, count);
  resolve_names(addresses, count, modules, arena);
  for (size_t i = 0; i < count; ++i) {
    const char* name = pseudo_frame_name(addresses[i].address);
    if (name == nullptr) continue;
    addresses[i].name = addresses[i].system_name = name;
    addresses[i].function_start = addresses[i].address;
  }
  return !arena.failed();
}

}  // namespace assay::inproc
