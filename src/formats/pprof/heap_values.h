// HeapValues: the values of a pprof heap profile become sums of the run.
//
// In: samples of a profile whose types are inuse_space, inuse_objects, alloc_space and
// alloc_objects (Go, Assay, libassay) or space and objects (pprof's own, of older text), all of
// them or some; their values are scaled already. Out: sums, the mappings of the processes they are
// of, notes of what the profile does not say. Failures: none; what is less than nothing, in the
// difference of two profiles, is left out and noted.
#pragma once

#include <set>

#include "formats/pprof/profile_message.h"
#include "formats/import/run_builder.h"

namespace assay::formats {

class HeapValues {
 public:
  HeapValues(const ProfileMessage& profile, RunBuilder& builder);

  // Whether the profile has such values at all; else nothing else may be called.
  bool present() const { return live_bytes_ >= 0 || bytes_ >= 0; }
  void add(const ProfileSample& sample, model::ThreadId thread, model::StackId stack);
  void finish();

 private:
  int index_of(std::string_view type, std::string_view unit) const;
  int64_t value(const ProfileSample& sample, int index);
  void add_mappings(model::ThreadId of_thread);

  const ProfileMessage& profile_;
  RunBuilder& builder_;
  int live_bytes_ = -1, live_objects_ = -1, bytes_ = -1, objects_ = -1;  // −1: none of the values
  int64_t rate_bytes_ = 0;
  uint64_t negative_ = 0;
  std::set<uint32_t> processes_;  // that have their mappings
};

}  // namespace assay::formats
