#include "analysis/heap/heap_leaks.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/heap/heap_findings.h"
#include "base/units.h"

namespace assay::analysis {
namespace {

constexpr double kLargeLeak = 4 << 20;  // smaller ones may be missed
constexpr double kLargeLeakPerS = 1 << 20;
constexpr double kLittle = 64 << 10;  // of which one may say that nothing was allocated
// Where nothing was sampled, fewer bytes than three times the rate were taken, with 95 %.
constexpr double kUnseenSamples = 3;
// Growth of so few samples is as likely chance: four in each quarter leave 5 % for one without any.
constexpr uint64_t kFewSamples = 16;

double rate_of(const HeapSummary& heap, uint64_t asked) {
  return heap.mean_rate_bytes > 0 ? heap.mean_rate_bytes : static_cast<double>(asked);
}

double watched_seconds(const HeapSummary& heap) {
  return std::max(static_cast<double>(heap.window_ns - heap.young_ns) / 1e9, 1e-9);
}

std::string bytes(double value) {
  return format_bytes(static_cast<uint64_t>(std::llround(std::max(0.0, value))));
}

LeakVerdict nothing_sampled(uint64_t asked) {
  return {LeakAnswer::unknown,
          fmt::format("nothing was sampled at one sample per {}", format_bytes(asked)),
          "--rate 16k, a longer --for, or some load on the target"};
}

LeakVerdict too_coarse(const HeapSummary& heap, uint64_t asked, double hidden) {
  double rate = rate_of(heap, asked);
  // The sampler keeps to its most samples a second whatever is asked for.
  bool is_raised = rate > 2 * static_cast<double>(asked);
  double times = std::max(2.0, hidden / kLargeLeakPerS);
  auto window_s = static_cast<double>(heap.window_ns) / 1e9;
  std::string longer = fmt::format("profile for {:.0f} s", std::ceil(window_s * times));
  double finer =
      std::max(16384.0, static_cast<double>(asked) / std::exp2(std::ceil(std::log2(times))));
  bool can_be_finer = !is_raised && finer < static_cast<double>(asked);
  return {LeakAnswer::unknown,
          fmt::format("up to {} a second may leak unseen in {} samples, one per {}{}",
                      bytes(hidden), heap.allocated.samples, bytes(rate),
                      is_raised ? fmt::format(" (raised from {}: more samples than the sampler "
                                              "takes a second)",
                                              format_bytes(asked))
                                : ""),
          can_be_finer ? fmt::format("--rate {:.0f}k, or {}", finer / 1024, longer) : longer};
}

LeakVerdict perhaps_growing(const HeapSummary& heap) {
  return {LeakAnswer::unknown,
          fmt::format("what lives grew to {} ± {}, which {} samples do not make certain",
                      bytes(heap.live.bytes), bytes(heap.live.bytes_error), heap.live.samples),
          "a finer --rate, or a longer --for"};
}

}  // namespace

double hidden_leak_bytes_per_s(const HeapSummary& heap, uint64_t asked_rate_bytes) {
  double hidden = kUnseenSamples * rate_of(heap, asked_rate_bytes);
  for (const HeapSite& site : heap.sites) {
    bool is_undecided =
        !site.leaks && site.growth_bytes_per_s > 0 && site.old.samples < kFewSamples;
    if (is_undecided) hidden += site.old.bytes + site.old.bytes_error;
  }
  double most = heap.allocated.bytes + heap.allocated.bytes_error;
  if (heap.allocated.samples > 0) hidden = std::min(hidden, most);
  return hidden / watched_seconds(heap);
}

LeakVerdict judge_leaks(const Report& report, const LeakCircumstances& circumstances) {
  const HeapSummary& heap = report.heap;
  bool leaks = std::any_of(heap.sites.begin(), heap.sites.end(),
                           [](const HeapSite& site) { return site.leaks; });
  // Where lines share an allocating function, none of them alone need keep most of what it takes.
  bool grows = std::any_of(report.findings.begin(), report.findings.end(),
                           [](const Diagnosis& finding) { return finding.id == "heap-growth"; });
  if (leaks || grows) return {LeakAnswer::suspected, "", ""};
  if (circumstances.target_ended) {
    return {LeakAnswer::unknown, "the target ended while it was profiled",
            "a shorter --for, or start it with -- COMMAND"};
  }
  uint64_t asked = circumstances.asked_rate_bytes;
  if (heap.allocated.samples == 0 && kUnseenSamples * static_cast<double>(asked) > kLittle)
    return nothing_sampled(asked);
  if (heap_trend(heap) == HeapTrend::perhaps_growing && heap.live.bytes > kLittle)
    return perhaps_growing(heap);
  double hidden = hidden_leak_bytes_per_s(heap, asked);
  bool is_large = hidden > kLargeLeakPerS && hidden * watched_seconds(heap) > kLargeLeak;
  if (is_large) return too_coarse(heap, asked, hidden);
  return {};
}

}  // namespace assay::analysis
