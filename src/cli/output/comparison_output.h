// What `assay diff` and `assay ab` share: reading runs, the formats of a comparison, --fail-on.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/compare.h"
#include "base/result.h"
#include "run/selection/selection.h"

namespace assay::cli {

inline constexpr int kFailedOn = 3;  // exit status: a limit of --fail-on was passed

// "cpu_per_request>+3%"
struct ChangeLimit {
  std::string measure;
  bool above = true;
  double percent = 0;
};
Result<std::vector<ChangeLimit>> parse_limits(const std::vector<std::string>& texts);

// The comparison and what its pictures are drawn from.
struct ComparedRuns {
  analysis::UnionTree tree;
  analysis::Comparison comparison;
};
// An Error when one file stands twice on one side.
Result<void> refuse_repeated(const std::vector<std::string>& base,
                             const std::vector<std::string>& next);
// `per`: "request", "second", "share", "run", or empty for what fits. The selection holds for every
// run.
Result<ComparedRuns> compare_files(const std::vector<std::string>& base,
                                   const std::vector<std::string>& next, const std::string& per,
                                   const run::Selection& selection = {});

// The format that a file's name asks for; text when it says nothing.
std::string format_of(const std::string& path);

// `format`: "text", "md", "json", "html", "svg".
std::string render(const ComparedRuns& compared, const std::string& format, bool colour);

// Says which limits were passed; kFailedOn when one was, else kFailed for a measure that is not
// there, else kDone.
int judge_limits(const analysis::Comparison& comparison, const std::vector<ChangeLimit>& limits);

}  // namespace assay::cli
