// cleared(): the usual suspects that this run's numbers clear.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/rules/detect.h"
#include "analysis/verdict/verdict.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kSmall = 0.05;  // the interval's upper end must be below
constexpr uint64_t kEnoughSamples = 100;

struct Suspect {
  const char* what;
  std::initializer_list<const char*> categories;  // ids of the subsystem breakdown
};

const Suspect kCpuSuspects[]{
    {"memory allocation",
     {"malloc", "malloc-modules", "go-malloc", "kernel-page-faults", "kernel-memory-maps"}},
    {"maps and hash tables", {"hash-tables"}},
    {"serialisation (protobuf, JSON)", {"protobuf", "protobuf-module", "json"}},
    {"strings", {"strings", "string-scan"}},
    {"logging", {"logging"}},
    {"system calls and the kernel's network",
     {"kernel-network", "kernel-epoll", "kernel-entry", "kernel-futex", "kernel-files",
      "kernel-block"}},
    {"lock operations on the CPU",
     {"mutexes", "rwlocks", "spinlocks", "conditions", "debug-locks"}},
    {"TLS", {"tls", "tls-modules"}},
    {"compression", {"compression", "compression-modules"}},
    {"the gRPC completion queue", {"grpc-completion-queue"}},
    {"garbage collection", {"go-gc", "jvm-gc", "python-gc", "v8-gc"}},
};

void clear_waits(const Report& report, std::vector<NotBottleneck>& list) {
  const Vitals& v = report.vitals;
  struct Row {
    const char* what;
    std::optional<double> share;
  };
  std::optional<double> network;
  if (v.receive) network = *v.receive + v.send.value_or(0);
  for (const Row& row : {Row{"waiting for locks", v.lock}, Row{"waiting for disks", v.disk},
                         Row{"waiting for the network inside requests", network}}) {
    if (!row.share || *row.share >= kSmall) continue;
    list.push_back(
        {row.what, fmt::format("{} of busy time", format_percent(*row.share)), *row.share});
  }
}

}  // namespace

std::vector<NotBottleneck> cleared(const Report& report) {
  std::vector<NotBottleneck> list;
  const std::string& kind = report.verdict.kind;
  if (kind == "withheld") return list;
  clear_waits(report, list);
  if (report.on_cpu.samples < kEnoughSamples) return list;
  for (const Suspect& suspect : kCpuSuspects) {
    double share = 0;
    for (const CategoryShare& row : report.categories) {
      if (row.category.breakdown != kSubsystem) continue;
      for (const char* id : suspect.categories) {
        if (row.category.id == id) share += row.share.share;
      }
    }
    Estimate e = wilson(std::min(1.0, share), report.on_cpu.effective_samples);
    std::string figure = fmt::format("{} of CPU time ({:.1f}–{:.1f} %)", format_percent(e.share),
                                     e.low * 100, e.high * 100);
    if (e.high < kSmall && share > 0) {
      list.push_back({suspect.what, figure, share});
    } else if (share >= kSmall && !is_cpu_kind(kind) && kind != "mixed") {
      list.push_back({suspect.what, figure + ", but the CPU is not what limits throughput", share});
    }
  }
  return list;
}

}  // namespace assay::analysis
