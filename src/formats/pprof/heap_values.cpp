#include "formats/pprof/heap_values.h"

#include <algorithm>

#include "formats/import/reading.h"

namespace assay::formats {

HeapValues::HeapValues(const ProfileMessage& profile, RunBuilder& builder)
    : profile_(profile), builder_(builder) {
  live_bytes_ = std::max(index_of("inuse_space", "bytes"), index_of("space", "bytes"));
  live_objects_ = std::max(index_of("inuse_objects", "count"), index_of("objects", "count"));
  bytes_ = index_of("alloc_space", "bytes");
  objects_ = index_of("alloc_objects", "count");
  if (!present()) return;
  builder.begin_heap();
  if (profile.period_type.unit == "bytes" && profile.period > 1) rate_bytes_ = profile.period;
}

int HeapValues::index_of(std::string_view type, std::string_view unit) const {
  for (size_t i = 0; i < profile_.types.size(); ++i) {
    if (profile_.types[i].type == type && profile_.types[i].unit == unit)
      return static_cast<int>(i);
  }
  return -1;
}

int64_t HeapValues::value(const ProfileSample& sample, int index) {
  if (index < 0) return 0;
  int64_t value = sample.values[static_cast<size_t>(index)];
  negative_ += value < 0;
  return std::max<int64_t>(0, value);
}

void HeapValues::add(const ProfileSample& sample, model::ThreadId thread, model::StackId stack) {
  model::HeapSum sum{thread, stack, 0, 0, 0, 0, rate_bytes_};
  sum.live_bytes = value(sample, live_bytes_);
  sum.live_objects = value(sample, live_objects_);
  sum.bytes = value(sample, bytes_);
  sum.objects = value(sample, objects_);
  builder_.heap_sum(sum);
  if (processes_.insert(builder_.process_of(thread).value).second) add_mappings(thread);
}

// So that the run can be written with addresses again.
void HeapValues::add_mappings(model::ThreadId of_thread) {
  for (const ProfileMessage::Mapping& mapping : profile_.mappings) {
    if (mapping.limit <= mapping.start) continue;
    model::ModuleId module = module_by_name(builder_, mapping.file,
                                            std::string(stored(mapping.build_id)), mapping.start);
    if (builder_.modules()[module].kind != model::ModuleKind::elf) continue;
    builder_.mapping(of_thread, {mapping.start, mapping.limit, mapping.offset, module}, 0);
  }
}

void HeapValues::finish() {
  if (live_bytes_ < 0) builder_.heap_lacks_live();
  if (bytes_ < 0) builder_.heap_lacks_freed();
  if (negative_ == 0) return;
  builder_.note("heap",
                fmt::format("the imported profile is the difference of two, and {} of its values "
                            "are less than nothing: what shrank is left out",
                            negative_));
}

}  // namespace assay::formats
