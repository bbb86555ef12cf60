#include "model/module.h"

namespace assay::model {

ModuleId ModuleTable::intern(ModuleKind kind, const std::string& path,
                             const std::string& build_id) {
  std::string key;
  key.reserve(path.size() + build_id.size() + 3);
  key += static_cast<char>('0' + static_cast<int>(kind));
  key += build_id;
  key += '\0';
  key += path;
  auto [it, added] =
      by_key_.try_emplace(std::move(key), ModuleId{static_cast<uint32_t>(modules_.size())});
  if (added) modules_.push_back(Module{it->second, kind, path, build_id});
  return it->second;
}

}  // namespace assay::model
