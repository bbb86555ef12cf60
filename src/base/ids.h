// Typed indices, so that the index of a frame cannot be used as the index of a stack.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace assay {

template <class Tag>
struct Id {
  uint32_t value = 0;
  auto operator<=>(const Id&) const = default;
};

}  // namespace assay

template <class Tag>
struct std::hash<assay::Id<Tag>> {
  size_t operator()(assay::Id<Tag> id) const noexcept { return std::hash<uint32_t>()(id.value); }
};
