#include "inject/inproc/http/endpoints.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "inject/inproc/http/cpu_pages.h"
#include "inject/inproc/http/gperftools_pages.h"
#include "inject/inproc/http/port_handover.h"
#include "inject/inproc/http/profile_pages.h"
#include "inject/inproc/write/resolve_names.h"
#include "inject/inproc/lifecycle/switches.h"

namespace assay::inproc {
namespace {

constexpr size_t kMaxSymbols = 1 << 16;

void answer_cmdline(HttpExchange& exchange) {
  ByteBuffer& body = exchange.answer.body;
  if (!read_whole_file("/proc/self/cmdline", body))
    return answer_error(exchange, 500, "/proc/self/cmdline cannot be read");
  // Joined by NUL, so none behind the last word.
  if (body.size() > 0 && body.data()[body.size() - 1] == 0) {
    ByteBuffer trimmed;
    trimmed.append(body.data(), body.size() - 1);
    body.swap(trimmed);
  }
}

void answer_profile(HttpExchange& exchange) {
  if (!profile_cpu(exchange, ASSAY_PPROF)) return;
  exchange.answer.content_type = "application/octet-stream";
  snprintf(exchange.answer.file_name, sizeof exchange.answer.file_name, "profile");
}

// Addresses joined by '+', from the body of a POST or the query of a GET.
void answer_symbol(HttpExchange& exchange) {
  std::string_view text =
      exchange.request.method == "POST" ? exchange.request.body : exchange.request.query;
  size_t words = 1;
  for (char c : text) words += c == '+';
  if (words > kMaxSymbols) return answer_error(exchange, 400, "too many addresses at once");
  Arena arena;
  auto* wanted = arena.array<CodeAddress>(words);
  auto* order = arena.array<uintptr_t>(words);
  ModuleMap modules;
  if (wanted == nullptr || order == nullptr || !modules.read(arena))
    return answer_error(exchange, 500, "no memory for symbols");
  size_t count = 0;
  for (size_t at = 0; at <= text.size();) {
    size_t end = at;
    while (end < text.size() && text[end] != '+') ++end;
    char word[32] = "";
    if (end - at < sizeof word) std::memcpy(word, text.data() + at, end - at);
    uintptr_t address = std::strtoul(word, nullptr, 0);
    if (address != 0) order[count] = wanted[count].address = address, ++count;
    at = end + 1;
  }
  size_t unique = sort_addresses(wanted, count);
  resolve_names(wanted, unique, modules, arena);
  exchange.answer.body.append("num_symbols: 1\n");
  for (size_t i = 0; i < count; ++i) {
    const CodeAddress* found = find_address(wanted, unique, order[i]);
    if (found != nullptr && found->name != nullptr)
      exchange.answer.body.print("%#lx %s\n", order[i], found->name);
  }
}

struct Page {
  const char* name;
  void (*answer)(HttpExchange&);
};
constexpr Page kPages[] = {{"cmdline", answer_cmdline},
                           {"profile", answer_profile},
                           {"symbol", answer_symbol},
                           {"trace", answer_trace}};

}  // namespace

void answer_error(HttpExchange& exchange, int status, const char* sentence) {
  exchange.answer.status = status;
  exchange.answer.content_type = "text/plain; charset=utf-8";
  exchange.answer.file_name[0] = 0;
  exchange.answer.pprof_error = true;
  exchange.answer.body.clear();
  exchange.answer.body.print("%s\n", sentence);
}

void redirect_to_index(HttpExchange& exchange) {
  exchange.answer.status = 301;
  ByteBuffer& location = exchange.answer.location;
  location.append("/debug/pprof/");
  if (!exchange.request.query.empty()) location.append("?");
  // The query is not trusted: characters that could end the field are not copied.
  for (char c : exchange.request.query)
    if (c > ' ' && c < 0x7f) location.append(&c, 1);
}

bool query_number(const HttpRequest& request, const char* name, int64_t& number) {
  char text[32];
  if (!query_value(request.query, name, text, sizeof text)) return false;
  bool digits = (text[0] >= '0' && text[0] <= '9') ||
                ((text[0] == '-' || text[0] == '+') && text[1] >= '0' && text[1] <= '9');
  if (!digits) return false;
  errno = 0;
  char* end = nullptr;
  number = std::strtoll(text, &end, 10);
  return *end == 0 && errno == 0;
}

void answer_pprof(HttpExchange& exchange) {
  constexpr std::string_view kRoot = "/debug/pprof/", kGperftoolsRoot = "/pprof/";
  std::string_view path = exchange.request.path;
  if (path == "/debug/pprof" || path == "/" || path == "/debug/") {
    return redirect_to_index(exchange);
  }
  if (path == kHandoverPath) return answer_handover_switch(exchange);
  if (has_prefix(path, kGperftoolsRoot)) {
    path.remove_prefix(kGperftoolsRoot.size());
    if (path == "symbol") return answer_symbol(exchange);
    return answer_gperftools(exchange, path);
  }
  if (!has_prefix(path, kRoot)) return answer_error(exchange, 404, "404 page not found");
  path.remove_prefix(kRoot.size());
  for (const Page& page : kPages)
    if (path == page.name) return page.answer(exchange);
  if (path.empty()) return answer_index(exchange);
  answer_named_profile(exchange, path);
}

}  // namespace assay::inproc
