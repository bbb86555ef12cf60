#include "inject/inproc/http/profile_pages.h"

#include <cstdio>

#include "inject/inproc/cpu/collect.h"
#include "inject/inproc/http/endpoints.h"
#include "inject/inproc/http/index_page.h"
#include "inject/inproc/write/write_pprof.h"
#include "inject/inproc/write/write_text.h"

namespace assay::inproc {
namespace {

constexpr int64_t kMaxSeconds = 3600;

using Text = void (*)(const Profile& profile, const NamedCode& code, ByteBuffer& out);

struct Kind {
  std::string_view name;
  bool (*collect)(Arena& arena, Profile& profile);
  Text text;
};

constexpr Kind kKinds[] = {
    {"allocs", collect_allocs, write_heap_text},
    {"block", collect_block,
     [](const Profile& profile, const NamedCode& code, ByteBuffer& out) {
       write_contention_text(profile, code, "contention", out);
     }},
    {"goroutine", collect_thread_profile,
     [](const Profile& profile, const NamedCode& code, ByteBuffer& out) {
       write_count_text(profile, code, "goroutine", out);
     }},
    {"heap", collect_heap, write_heap_text},
    {"mutex", collect_mutex,
     [](const Profile& profile, const NamedCode& code, ByteBuffer& out) {
       write_contention_text(profile, code, "mutex", out);
     }},
    {"threadcreate", collect_thread_creations,
     [](const Profile& profile, const NamedCode& code, ByteBuffer& out) {
       write_count_text(profile, code, "threadcreate", out);
     }},
};

void name_file(HttpExchange& exchange, const Kind& kind, const char* suffix) {
  exchange.answer.content_type = "application/octet-stream";
  snprintf(exchange.answer.file_name, sizeof exchange.answer.file_name, "%.*s%s",
           static_cast<int>(kind.name.size()), kind.name.data(), suffix);
}

void answer_delta(HttpExchange& exchange, const Kind& kind) {
  int64_t seconds = 0, debug = 0;
  if (!query_number(exchange.request, "seconds", seconds) || seconds <= 0)
    return answer_error(exchange, 400,
                        "invalid value for \"seconds\" - must be a positive integer");
  if (seconds > kMaxSeconds)
    return answer_error(exchange, 400, "profile duration exceeds server's WriteTimeout");
  if (query_number(exchange.request, "debug", debug) && debug != 0)
    return answer_error(exchange, 400, "seconds and debug params are incompatible");
  Arena arena;
  Profile before, after;
  if (!kind.collect(arena, before)) return answer_error(exchange, 500, "failed to collect profile");
  if (!exchange.sleep_ms(seconds * 1000)) return answer_error(exchange, 500, "context canceled");
  bool made = kind.collect(arena, after) && subtract_profile(before, after, arena) &&
              write_pprof(after, arena, exchange.answer.body);
  if (!made) return answer_error(exchange, 500, "failed to collect profile");
  name_file(exchange, kind, "-delta");
}

void answer_threads(HttpExchange& exchange) {
  Arena arena;
  ThreadStack* stacks = nullptr;
  size_t count = 0;
  if (!collect_thread_stacks(arena, stacks, count) ||
      !write_thread_text(stacks, count, arena, exchange.answer.body))
    answer_error(exchange, 500, "failed to collect profile");
}

void answer_now(HttpExchange& exchange, const Kind& kind) {
  int64_t debug = 0;
  bool text = query_number(exchange.request, "debug", debug) && debug != 0;
  if (debug >= 2 && kind.name == "goroutine") return answer_threads(exchange);
  Arena arena;
  Profile profile;
  if (!kind.collect(arena, profile))
    return answer_error(exchange, 500, "failed to collect profile");
  if (!text) {
    name_file(exchange, kind, "");
    if (!write_pprof(profile, arena, exchange.answer.body))
      answer_error(exchange, 500, "failed to collect profile");
    return;
  }
  NamedCode code;
  if (!code.make(profile, arena)) return answer_error(exchange, 500, "failed to collect profile");
  kind.text(profile, code, exchange.answer.body);
}

}  // namespace

void answer_index(HttpExchange& exchange) {
  exchange.answer.content_type = "text/html; charset=utf-8";
  write_index_page(exchange.request, exchange.answer.body);
}

void answer_named_profile(HttpExchange& exchange, std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name != name) continue;
    char seconds[32];
    bool delta = query_value(exchange.request.query, "seconds", seconds, sizeof seconds);
    if (delta && seconds[0] != 0) return answer_delta(exchange, kind);
    return answer_now(exchange, kind);
  }
  answer_error(exchange, 404, "Unknown profile");
}

}  // namespace assay::inproc
