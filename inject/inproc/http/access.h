// Who may ask: with a token, who knows it; without one, programs and pages of this machine.
//
// On loopback the Host field must name this machine: a page from elsewhere that a browser was led
// to send here by a name of its own (DNS rebinding) is refused.
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
