#include "formats/format.h"

#include "formats/folded/read_folded.h"
#include "formats/folded/write_folded.h"
#include "formats/tree/tree_export.h"

namespace assay::formats {
namespace {

Result<void> write(const WriteJob& job) {
  auto tree = make_tree(job);
  if (!tree) return std::unexpected(tree.error());
  write_folded(*tree, job.output);
  return {};
}

Result<void> read(const ReadJob& job) {
  return read_folded(job.input, job.options, job.builder);
}

constexpr FormatSpec kFormats[] = {{
    .name = "folded",
    .place = 20,
    .title = "Folded stacks",
    .help = "text, for flame graph tools",
    .metrics = kTimeMetrics | kHeapMetrics,
    .one_metric = true,
    .suffixes = {".folded"},
    .write = write,
    .sure = Sure::lines,
    .detect = [](std::string_view head) { return is_text(head) && looks_folded(head); },
    .asks_meaning = true,
    .read = read,
}};

}  // namespace

std::span<const FormatSpec> folded_formats() {
  return kFormats;
}

}  // namespace assay::formats
