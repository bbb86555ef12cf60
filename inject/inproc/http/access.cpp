#include "inject/inproc/http/access.h"

#include <cstdio>
#include <cstring>

namespace assay::inproc {
namespace {

// Takes the same time wherever the first difference is.
bool same_secret(const AccessRule& rule, std::string_view given) {
  unsigned difference = given.size() == rule.token_bytes ? 0 : 1;
  for (size_t i = 0; i < rule.token_bytes; ++i)
    difference |= static_cast<unsigned char>(rule.token[i]) ^
                  static_cast<unsigned char>(i < given.size() ? given[i] : 0);
  return difference == 0;
}

// The text after "Bearer " (any case); empty: it is no such field.
std::string_view bearer_of(std::string_view field) {
  constexpr std::string_view kScheme = "Bearer";
  if (field.size() <= kScheme.size() || field[kScheme.size()] != ' ' ||
      !same_word({field.data(), kScheme.size()}, kScheme))
    return {};
  field.remove_prefix(kScheme.size());
  while (!field.empty() && field[0] == ' ') field.remove_prefix(1);
  return field;
}

bool names_this_machine(std::string_view host) {
  if (host.empty()) return true;
  if (host[0] == '[') return true;  // an address in numbers
  size_t bytes = 0;
  bool numeric = true;
  for (; bytes < host.size() && host[bytes] != ':'; ++bytes)
    numeric = numeric && ((host[bytes] >= '0' && host[bytes] <= '9') || host[bytes] == '.');
  std::string_view name(host.data(), bytes);
  return numeric || name == "localhost" || name == "unix";
}

}  // namespace

bool set_token(AccessRule& rule, const char* token, char* sentence, size_t room) {
  size_t bytes = token == nullptr ? 0 : std::strlen(token);
  if (bytes >= kMaxTokenBytes) {
    snprintf(sentence, room, "the token is longer than %zu bytes", kMaxTokenBytes - 1);
    return false;
  }
  if (bytes > 0) std::memcpy(rule.token, token, bytes);
  rule.token[bytes] = 0;
  rule.token_bytes = bytes;
  return true;
}

int check_access(const AccessRule& rule, const HttpRequest& request, const char*& sentence) {
  if (rule.token_bytes > 0) {
    std::string_view bearer = bearer_of(request.authorization);
    if (!bearer.empty() && same_secret(rule, bearer)) return 200;
    char given[kMaxTokenBytes + 1];
    if (query_value(request.query, "token", given, sizeof given) && same_secret(rule, given))
      return 200;
    sentence = "a token is wanted: Authorization: Bearer TOKEN, or ?token=TOKEN";
    return 401;
  }
  if (rule.loopback && !names_this_machine(request.host)) {
    sentence = "this profiler answers on this machine's own names only";
    return 403;
  }
  return 200;
}

}  // namespace assay::inproc
