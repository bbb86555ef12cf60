// Url: the address that load is sent to.
//
//   http://host[:port][/path]       https://…
//   grpc://host:port/package.Service/Method      grpcs://…
//
// In: text; out: its parts, or an Error that says what is wrong with it. A fragment is dropped.
// User names and passwords in the address are refused: use a header. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::load {

struct Url {
  bool tls = false;
  bool grpc = false;
  std::string host;  // without the brackets of an IPv6 address
  uint16_t port = 0;
  std::string path;       // with its query; "/" at least
  std::string authority;  // the value of Host and :authority

  std::string text() const;
};

Result<Url> parse_url(std::string_view text);

// Whether the text begins with one of the schemes above.
bool looks_like_url(std::string_view text);

}  // namespace assay::load
