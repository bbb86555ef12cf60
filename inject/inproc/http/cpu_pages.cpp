#include "inject/inproc/http/cpu_pages.h"

#include <cstdio>
#include <cstdlib>

#include "inject/inproc/http/endpoints.h"
#include "inject/inproc/write/profile_files.h"
#include "inject/inproc/write/write_timeline.h"

namespace assay::inproc {
namespace {

constexpr int64_t kDefaultSeconds = 30;
// The kernel looks at CPU timers at its own tick, 100 to 1000 times a second.
constexpr uint32_t kTraceHz = 500;

// False: an error was answered.
bool start(HttpExchange& exchange, const CpuPlan& plan, const char* what) {
  const char* problem = start_cpu_profile(plan);
  if (problem == nullptr) return true;
  char sentence[160];
  snprintf(sentence, sizeof sentence, "Could not enable %s: %s", what, problem);
  answer_error(exchange, 500, sentence);
  return false;
}

}  // namespace

bool profile_cpu(HttpExchange& exchange, assay_format format) {
  int64_t seconds = 0;
  if (!query_number(exchange.request, "seconds", seconds) || seconds <= 0)
    seconds = kDefaultSeconds;
  if (seconds > kMaxSeconds) {
    answer_error(exchange, 400, "profile duration exceeds server's WriteTimeout");
    return false;
  }
  CpuPlan plan;
  int64_t hz = 0;
  if (query_number(exchange.request, "hz", hz) && hz > 0 && hz <= kMaxHz)
    plan.hz = static_cast<uint32_t>(hz);
  if (!start(exchange, plan, "CPU profiling")) return false;
  exchange.sleep_ms(seconds * 1000);
  CpuResult result;
  bool made = stop_cpu_profile(result) && write_cpu_profile(result, format, exchange.answer.body);
  finish_cpu_profile();
  if (!made) answer_error(exchange, 500, "no memory for the profile");
  return made;
}

void answer_trace(HttpExchange& exchange) {
  char text[32] = "";
  query_value(exchange.request.query, "seconds", text, sizeof text);
  char* end = nullptr;
  double seconds = std::strtod(text, &end);
  if (end == text || *end != 0 || !(seconds > 0)) seconds = 1;
  if (seconds > static_cast<double>(kMaxSeconds))
    return answer_error(exchange, 400, "profile duration exceeds server's WriteTimeout");
  CpuPlan plan;
  plan.hz = kTraceHz;
  plan.events = true;
  if (!start(exchange, plan, "tracing")) return;
  exchange.sleep_ms(static_cast<int64_t>(seconds * 1000));
  CpuResult result;
  Arena arena;
  bool made = stop_cpu_profile(result) && write_timeline(result, arena, exchange.answer.body);
  finish_cpu_profile();
  if (!made) return answer_error(exchange, 500, "no memory for the timeline");
  exchange.answer.content_type = "application/json";
  snprintf(exchange.answer.file_name, sizeof exchange.answer.file_name, "trace.json");
}

}  // namespace assay::inproc
