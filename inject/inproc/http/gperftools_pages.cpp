#include "inject/inproc/http/gperftools_pages.h"

#include "inject/inproc/cpu/collect.h"
#include "inject/inproc/http/cpu_pages.h"
#include "inject/inproc/http/endpoints.h"
#include "inject/inproc/write/write_gperftools.h"

namespace assay::inproc {
namespace {

void answer_heap(HttpExchange& exchange) {
  if (!write_heap_profile(ASSAY_GPERFTOOLS, exchange.answer.body))
    answer_error(exchange, 500, "failed to collect profile");
}

void answer_contention(HttpExchange& exchange) {
  Arena arena;
  Profile profile;
  if (!collect_block(arena, profile) || !write_gperftools_contention(profile, exchange.answer.body))
    answer_error(exchange, 500, "failed to collect profile");
}

// One word per line, as gperftools has it.
void answer_cmdline(HttpExchange& exchange) {
  ByteBuffer& body = exchange.answer.body;
  if (!read_whole_file("/proc/self/cmdline", body))
    return answer_error(exchange, 500, "/proc/self/cmdline cannot be read");
  for (size_t i = 0; i < body.size(); ++i)
    if (body.data()[i] == 0) body.data()[i] = '\n';
}

}  // namespace

void answer_gperftools(HttpExchange& exchange, std::string_view name) {
  if (name == "profile") {
    if (profile_cpu(exchange, ASSAY_GPERFTOOLS))
      exchange.answer.content_type = "application/octet-stream";
    return;
  }
  if (name == "heap") return answer_heap(exchange);
  if (name == "contention") return answer_contention(exchange);
  if (name == "cmdline") return answer_cmdline(exchange);
  if (name.empty()) return redirect_to_index(exchange);
  answer_error(exchange, 404, "Unknown profile");
}

}  // namespace assay::inproc
