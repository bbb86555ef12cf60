#include "analysis/rules/run_rules.h"

namespace assay::analysis {

RunRules::RunRules(const CallTree& tree, const run::Contents& run)
    : threads_(run.threads.size()),
      idle_(default_rules(), sets_),
      categories_(default_rules(), sets_),
      features_(tree, sets_),
      judge_(tree, features_, idle_, run) {
  categories_.place(tree, features_, run);
}

std::vector<std::string_view> RunRules::category_names() const {
  std::vector<std::string_view> names;
  for (const Category& category : categories_.all()) names.push_back(category.name);
  return names;
}

}  // namespace assay::analysis
