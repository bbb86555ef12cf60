#include <fmt/format.h>

#include "base/units.h"
#include "load/load_options.h"

namespace assay::load {
namespace {

constexpr double kBusyShare = 0.9;  // of one CPU: the thread cannot do more
constexpr int64_t kLateNs =
    10 * kNsPerMs;                  // a tenth of a second's requests at 99 % later than this
constexpr uint64_t kFewSends = 20;  // too few to judge lateness by

}  // namespace

double LoadResult::cpu_share() const {
  return end > begin ? static_cast<double>(total.busiest_cpu_ns) / static_cast<double>(end - begin)
                     : 0;
}

double LoadResult::wait_share() const {
  return end > begin ? static_cast<double>(total.busiest_wait_ns) / static_cast<double>(end - begin)
                     : 0;
}

std::string LoadResult::saturated() const {
  if (cpu_share() >= kBusyShare) {
    return fmt::format("the load generator used {} of its CPU: it may be the limit, not the server",
                       format_percent(cpu_share()));
  }
  if (cpu_share() + wait_share() >= kBusyShare && wait_share() > 0.1) {
    return fmt::format(
        "the load generator ran {} of the time and waited {} for a CPU: it may be the limit, not "
        "the "
        "server",
        format_percent(cpu_share()), format_percent(wait_share()));
  }
  if (rate > 0 && total.lag.count() >= kFewSends && total.lag.quantile_ns(0.99) > kLateNs) {
    return fmt::format(
        "the load generator sent late (1 % of requests by {} or more) although clients were free",
        format_duration(total.lag.quantile_ns(0.99)));
  }
  return "";
}

}  // namespace assay::load
