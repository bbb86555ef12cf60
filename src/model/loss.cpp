#include "model/loss.h"

#include <array>

namespace assay::model {

const char* loss_kind_name(LossKind kind) {
  static constexpr std::array kNames{
      "ring records", "dropped samples",   "dropped stack copies", "throttled",
      "out of order", "malformed records", "untracked threads",    "side band records"};
  static_assert(kNames.size() == kLossKindCount);
  return kNames[static_cast<size_t>(kind) % kNames.size()];
}

}  // namespace assay::model
