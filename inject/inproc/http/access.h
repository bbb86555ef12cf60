// Access rule: with a token, requests must carry it; without one, only programs and pages of this
// machine are answered.
//
// On loopback the Host field must name this machine: so a foreign web page that reaches this
// address through its own DNS name (DNS rebinding) is refused.
#pragma once

#include <cstddef>

#include "inject/inproc/http/http_request.h"

namespace assay::inproc {

inline constexpr size_t kMaxTokenBytes = 256;

struct AccessRule {
  char token[kMaxTokenBytes] = "";
  size_t token_bytes = 0;
  bool loopback = true;
};

// nullptr or "": no token. False: too long, with a sentence.
bool set_token(AccessRule& rule, const char* token, char* sentence, size_t room);
// 200, or the status to refuse with and a sentence.
int check_access(const AccessRule& rule, const HttpRequest& request, const char*& sentence);

}  // namespace assay::inproc
