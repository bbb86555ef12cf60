// http_get: one document from an http URL that the user named.
//
// HTTP/1.1 over TCP, as Go's /debug/pprof speaks it; no redirects, no TLS. Failures: a URL that is
// none, a host that does not answer, a status other than 200, more bytes than `most_bytes`, silence
// for longer than `patience_seconds` (or the URL's own seconds= more).
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace assay::session {

bool is_http_url(const std::string& text);
Result<std::string> http_get(const std::string& url, size_t most_bytes, int patience_seconds = 30);

}  // namespace assay::session
