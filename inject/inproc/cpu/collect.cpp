#include "inject/inproc/cpu/collect.h"

#include <algorithm>
#include <cstring>

#include "inject/inproc/locks/lock_waits.h"
#include "inject/inproc/cpu/thread_stacks.h"

namespace assay::inproc {
namespace {

constexpr uint32_t kAllKinds = ~0U;

uint32_t bit(WaitKind kind) {
  return 1U << static_cast<uint32_t>(kind);
}

bool take_rows(const SampleTable* table, uint32_t kinds, int64_t count_scale, Arena& arena,
               Profile& profile) {
  uint32_t rows = table == nullptr ? 0 : table->rows();
  size_t filled = 0;
  SampleRow row;
  for (uint32_t i = 0; i < rows; ++i) filled += table->row(i, row);
  profile.samples = arena.array<ProfileSample>(filled + 1);
  if (profile.samples == nullptr) return false;
  for (uint32_t i = 0; i < rows && profile.count < filled; ++i) {
    if (!table->row(i, row) || (kinds >> row.kind & 1) == 0) continue;
    ProfileSample& sample = profile.samples[profile.count++];
    sample.pcs = row.pcs;
    sample.frames = row.frames;
    sample.label = row.label;
    sample.values[0] = (row.count + count_scale / 2) / count_scale;
    sample.values[1] = row.value;
  }
  profile.time_ns = unix_time_ns();
  return true;
}

bool collect_waits(uint32_t kinds, Arena& arena, Profile& profile) {
  profile.types[0] = {"contentions", "count"};
  profile.types[1] = {"delay", "nanoseconds"};
  profile.type_count = 2;
  profile.period_type = {"contentions", "count"};
  profile.period = 1;
  return take_rows(lock_wait_table(), kinds, kWaitCountScale, arena, profile) &&
         merge_samples(profile, arena);
}

int compare(const ProfileSample& a, const ProfileSample& b) {
  if (a.frames != b.frames) return a.frames < b.frames ? -1 : 1;
  if (a.label != b.label) return a.label < b.label ? -1 : 1;
  return std::memcmp(a.pcs, b.pcs, a.frames * sizeof(uintptr_t));
}

}  // namespace

bool collect_mutex(Arena& arena, Profile& profile) {
  return collect_waits(bit(WaitKind::mutex) | bit(WaitKind::rwlock), arena, profile);
}

bool collect_block(Arena& arena, Profile& profile) {
  return collect_waits(kAllKinds, arena, profile);
}

bool collect_thread_creations(Arena& arena, Profile& profile) {
  profile.types[0] = profile.period_type = {"threadcreate", "count"};
  profile.type_count = 1;
  profile.period = 1;
  return take_rows(thread_creation_table(), kAllKinds, 1, arena, profile) &&
         merge_samples(profile, arena);
}

bool collect_thread_profile(Arena& arena, Profile& profile) {
  ThreadStack* stacks = nullptr;
  size_t count = 0;
  if (!collect_thread_stacks(arena, stacks, count)) return false;
  profile.types[0] = profile.period_type = {"goroutine", "count"};
  profile.type_count = 1;
  profile.period = 1;
  profile.exact_leaf = true;
  profile.time_ns = unix_time_ns();
  profile.samples = arena.array<ProfileSample>(count + 1);
  if (profile.samples == nullptr) return false;
  for (size_t i = 0; i < count; ++i) {
    if (stacks[i].frames == 0) continue;
    ProfileSample& sample = profile.samples[profile.count++];
    sample.pcs = stacks[i].pcs;
    sample.frames = stacks[i].frames;
    sample.label = stacks[i].label;
    sample.values[0] = 1;
  }
  return merge_samples(profile, arena);
}

bool collect_allocs(Arena& arena, Profile& profile) {
  profile.default_type = "alloc_space";
  return collect_heap(arena, profile);
}

bool merge_samples(Profile& profile, Arena&) {
  ProfileSample* samples = profile.samples;
  std::sort(samples, samples + profile.count,
            [](const ProfileSample& a, const ProfileSample& b) { return compare(a, b) < 0; });
  size_t made = 0;
  for (size_t i = 0; i < profile.count;) {
    ProfileSample sum = samples[i];
    size_t next = i + 1;
    for (; next < profile.count && compare(samples[i], samples[next]) == 0; ++next)
      for (size_t k = 0; k < kMaxValues; ++k) sum.values[k] += samples[next].values[k];
    bool zero = true;
    for (int64_t value : sum.values) zero = zero && value == 0;
    i = next;
    if (!zero) samples[made++] = sum;
  }
  profile.count = made;
  return true;
}

bool subtract_profile(const Profile& earlier, Profile& later, Arena& arena) {
  auto* both = arena.array<ProfileSample>(earlier.count + later.count + 1);
  if (both == nullptr) return false;
  size_t count = 0;
  for (size_t i = 0; i < later.count; ++i) both[count++] = later.samples[i];
  for (size_t i = 0; i < earlier.count; ++i) {
    both[count] = earlier.samples[i];
    for (int64_t& value : both[count].values) value = -value;
    ++count;
  }
  later.samples = both;
  later.count = count;
  later.duration_ns = later.time_ns - earlier.time_ns;
  return merge_samples(later, arena);
}

}  // namespace assay::inproc
