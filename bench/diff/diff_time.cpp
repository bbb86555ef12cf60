// diff_time: how long a comparison of run files takes, from opening them to the last test.
//
// usage: diff_time BASE.assay NEW.assay     (large_runs writes a pair of a million samples each)
// The promise: two runs of a million samples in less than 2 s (release build).
#include <cstdio>
#include <ctime>

#include "analysis/compare/compare.h"
#include "analysis/compare/read_runs.h"
#include "base/clock.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  assay::TimeNs begin = assay::monotonic_ns();
  assay::analysis::UnionTree tree;
  auto runs = assay::analysis::read_runs({argv[1], argv[2]}, tree);
  if (!runs) return std::fprintf(stderr, "%s\n", runs.error().text().c_str()), 1;
  assay::TimeNs read = assay::monotonic_ns();
  auto compared = assay::analysis::compare(tree, {(*runs)[0]}, {(*runs)[1]}, {});
  if (!compared) return std::fprintf(stderr, "%s\n", compared.error().text().c_str()), 1;
  assay::TimeNs end = assay::monotonic_ns();
  std::printf("%llu and %llu samples, %zu call paths: read %.2f s, compared %.2f s; CPU %.2f s\n",
              static_cast<unsigned long long>((*runs)[0].samples),
              static_cast<unsigned long long>((*runs)[1].samples), tree.nodes().size(),
              static_cast<double>(read - begin) / 1e9, static_cast<double>(end - read) / 1e9,
              static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
  return 0;
}
