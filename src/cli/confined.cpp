#include "cli/confined.h"

#include "cli/commands.h"

namespace assay::cli {

int confined(const session::Confinement& rules, const std::function<int()>& work) {
  auto code = session::run_confined(rules, work);
  return code ? *code : print_error(code.error());
}

session::Confinement reading(const std::vector<std::string>& runs, const std::string& output) {
  session::Confinement rules;
  rules.reads = runs.size() == 1 ? runs.front() : "the runs";
  rules.files.runs = runs;
  if (!output.empty() && output != "-") rules.files.outputs.push_back(output);
  return rules;
}

}  // namespace assay::cli
