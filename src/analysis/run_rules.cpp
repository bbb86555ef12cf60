#include "view/run_rules.h"

namespace assay::view {

RunRules::RunRules(const analysis::CallTree& tree, const run::Contents& run)
    : idle_(analysis::default_rules(), sets_),
      categories_(analysis::default_rules(), sets_),
      features_(tree, sets_),
      judge_(tree, features_, idle_, run) {
  categories_.place(tree, features_, run);
}

std::vector<std::string_view> RunRules::category_names() const {
  std::vector<std::string_view> names;
  for (const analysis::Category& category : categories_.all()) names.push_back(category.name);
  return names;
}

}  // namespace assay::view
