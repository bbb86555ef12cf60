// Fuzz entry of libassay's HTTP server: any bytes as a request. The code runs inside foreign
// servers, so it must not read beyond the received bytes, and every text of a request must lie
// within them.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "inject/inproc/http/access.h"
#include "inject/inproc/http/http_request.h"
#include "tests/fuzz/fuzz_target.h"

using namespace assay::inproc;

namespace {

void check_within(std::string_view part, const char* bytes, size_t size) {
  if (part.empty()) return;
  if (part.data() < bytes || part.data() + part.size() > bytes + size) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // An allocation of exactly this size, so that a sanitizer sees every byte too many.
  auto* bytes = static_cast<char*>(std::malloc(size + (size == 0)));
  if (size > 0) std::memcpy(bytes, data, size);
  HttpRequest request;
  int status = 0;
  HttpParse result = parse_request(bytes, size, request, status);
  if (result == HttpParse::bad && status < 400) std::abort();
  if (result == HttpParse::complete) {
    for (std::string_view part : {request.method, request.path, request.query, request.host,
                                  request.authorization, request.body})
      check_within(part, bytes, size);
    decode_path(request);
    check_within(request.path, bytes, size);
    char value[8];
    query_value(request.query, "seconds", value, sizeof value);
    AccessRule rule;
    const char* sentence = nullptr;
    if (check_access(rule, request, sentence) != 200 && sentence == nullptr) std::abort();
    char problem[64];
    set_token(rule, "token", problem, sizeof problem);
    check_access(rule, request, sentence);
  }
  std::free(bytes);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_corpus() {
  std::vector<std::vector<uint8_t>> corpus;
  for (std::string text :
       {"GET /debug/pprof/profile?seconds=5&token=token HTTP/1.1\r\nHost: localhost:8070\r\n\r\n",
        "POST /debug/pprof/symbol HTTP/1.1\r\nContent-Length: 9\r\nAuthorization: Bearer "
        "token\r\n\r\n"
        "0x1+0x2+3",
        "GET /a%20b%zz?seconds=%31%3 HTTP/1.0\r\nA: b\r\nContent-Length: 0\r\n\r\n"})
    corpus.emplace_back(text.begin(), text.end());
  return corpus;
}
