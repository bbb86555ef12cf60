// Labels: (key, value) pairs that say what a thread is working for; its samples carry them.
//
// A thread's labels are one number: the innermost pair and, through it, the pairs around it. Equal
// sets have equal numbers, so a handler copies one word. Pairs and texts are interned forever and
// bounded; beyond the bound a scope gets no label of its own and is counted in dropped_labels().
// Any thread; push_label is lock-free, current_label async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay::inproc {

using LabelSet = uint32_t;  // 0: no labels

inline constexpr size_t kMaxLabelBytes = 255;  // longer keys and values are cut
inline constexpr size_t kMaxLabelDepth = 16;   // pairs of one set that reach a profile

// Adds a pair to the calling thread's labels; returns the argument for pop_label.
LabelSet push_label(std::string_view key, std::string_view value);
void pop_label(LabelSet previous);
LabelSet current_label();
uint64_t dropped_labels();

struct LabelPair {
  std::string_view key, value;
};
// The pairs of a set, innermost first, inner ones hiding outer ones of the same key; their number.
size_t pairs_of(LabelSet set, LabelPair (&pairs)[kMaxLabelDepth]);

}  // namespace assay::inproc
