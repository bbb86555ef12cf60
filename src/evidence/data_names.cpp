#include "evidence/data_names.h"

#include <iterator>

namespace assay::evidence {
namespace {

// A module's data lie above its code and below the next module: the first code mapping of the
// nearest module below the address. Null when there is none.
const model::Mapping* code_below(const model::AddressSpace& space, uint64_t address) {
  const auto& all = space.all();
  auto at = all.upper_bound(address);
  if (at == all.begin()) return nullptr;
  --at;
  while (at != all.begin() && std::prev(at)->second.module == at->second.module) --at;
  return &at->second;
}

}  // namespace

void DataNames::waited_on(pid_t pid, uint64_t address) {
  if (asked_.size() >= kMost || !asked_.insert({pid, address}).second) return;
  std::optional<model::ProcessId> process = tasks_.process(pid);
  const model::Mapping* code = code_below(spaces_.of(pid), address);
  if (!process || code == nullptr) return;
  namer_.add_data({*process, address, ""}, {code->module, code->to_module_address(address)});
}

void DataNames::forget(pid_t pid) {
  asked_.erase(asked_.lower_bound({pid, 0}), asked_.lower_bound({pid + 1, 0}));
}

}  // namespace assay::evidence
