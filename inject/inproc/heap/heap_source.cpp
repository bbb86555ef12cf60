#include "inject/inproc/heap/heap_source.h"

#include <cstdlib>

#include "inject/inproc/lifecycle/label_table.h"
#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/lifecycle/say.h"
#include "inject/inproc/write/write_gperftools.h"
#include "inject/inproc/write/write_pprof.h"
#include "inject/preload/tables/heap_table.h"
#include "src/model/heap/allocation_list.h"

namespace assay::inproc {
namespace {

struct Filling {
  Profile* profile;
  size_t room;
};

void take_site(const inject::HeapSite& site, void* data) {
  auto& filling = *static_cast<Filling*>(data);
  if (filling.profile->count >= filling.room || site.frames == 0) return;
  ProfileSample& sample = filling.profile->samples[filling.profile->count++];
  sample.pcs = site.pcs;
  sample.frames = site.frames;
  sample.label = site.label;
  sample.values[0] = static_cast<int64_t>(site.alloc_objects + 0.5);
  sample.values[1] = static_cast<int64_t>(site.alloc_bytes + 0.5);
  sample.values[2] = static_cast<int64_t>(site.live_objects + 0.5);
  sample.values[3] = static_cast<int64_t>(site.live_bytes + 0.5);
}

}  // namespace

bool start_heap_sampling() {
  inject::set_heap_label_source(current_label);
  int64_t rate = environment_number("ASSAY_HEAP_RATE", inject::kDefaultHeapRateBytes);
  if (rate <= 0) return false;
  return inject::start_heap_table(static_cast<uint64_t>(rate));
}

bool heap_is_sampled() {
  return inject::heap_table_rate() != 0;
}

HeapTotals heap_totals_now() {
  inject::HeapSite totals = inject::heap_totals();
  return {totals.alloc_bytes, totals.live_bytes};
}

bool collect_heap(Arena& arena, Profile& profile) {
  profile.types[0] = {"alloc_objects", "count"};
  profile.types[1] = {"alloc_space", "bytes"};
  profile.types[2] = {"inuse_objects", "count"};
  profile.types[3] = {"inuse_space", "bytes"};
  profile.type_count = 4;
  profile.period_type = {"space", "bytes"};
  profile.period = static_cast<int64_t>(inject::heap_table_rate());
  profile.time_ns = unix_time_ns();
  // The memory is charged to the caller, not to malloc or operator new.
  profile.drop_frames = model::kAllocationPattern;
  profile.samples = arena.array<ProfileSample>(inject::kMaxSites);
  if (profile.samples == nullptr) return false;
  Filling filling{&profile, inject::kMaxSites};
  inject::visit_heap_sites(take_site, &filling);
  return true;
}

bool write_heap_profile(assay_format format, ByteBuffer& out) {
  Arena arena;
  Profile profile;
  bool made = collect_heap(arena, profile) &&
              (format == ASSAY_GPERFTOOLS ? write_gperftools_heap(profile, out)
                                          : write_pprof(profile, arena, out));
  if (!made) fail("no memory for the heap profile");
  return made;
}

}  // namespace assay::inproc
