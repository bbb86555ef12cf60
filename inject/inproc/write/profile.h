// Profile: samples with their values, ready to be written in some format.
//
// Plain values in memory of one arena; made by the endpoints from the tables, read by the writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "inject/inproc/lifecycle/arena.h"

namespace assay::inproc {

inline constexpr size_t kMaxValues = 4;

struct ProfileSample {
  const uintptr_t* pcs = nullptr;  // innermost first
  uint32_t frames = 0;
  uint32_t label = 0;
  int64_t values[kMaxValues] = {};
};

struct ValueType {
  const char* type = "";
  const char* unit = "";
};

struct Profile {
  ValueType types[kMaxValues];
  size_t type_count = 0;
  const char* default_type = nullptr;
  ValueType period_type;
  int64_t period = 0;
  int64_t time_ns = 0;      // since 1970
  int64_t duration_ns = 0;  // 0: not over a span of time
  ProfileSample* samples = nullptr;
  size_t count = 0;
  bool exact_leaf = false;  // pcs[0] was executing; else every pc is a return address
  const char* comments[4] = {};
  std::string_view drop_frames;  // readers leave out frames with such names, and their callees

  // The address to look up for a frame: inside the call, not after it.
  uintptr_t code_address(const ProfileSample& sample, uint32_t frame) const {
    return sample.pcs[frame] - (frame == 0 && exact_leaf ? 0 : 1);
  }
};

int64_t unix_time_ns();
int64_t monotonic_ns();

}  // namespace assay::inproc
