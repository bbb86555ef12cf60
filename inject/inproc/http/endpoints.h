// The pages under /debug/pprof/, as in Go's net/http/pprof, and gperftools' pages under /pprof/.
//
// Runs on the server's threads. Errors are text with X-Go-Pprof: 1 and the status that Go gives.
#pragma once

#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

void answer_pprof(HttpExchange& exchange);

// An error as Go's handlers write it.
void answer_error(HttpExchange& exchange, int status, const char* sentence);
// Redirects to the page /debug/pprof/, with the query, which may contain the token.
void redirect_to_index(HttpExchange& exchange);
// A query value as an integer, parsed like Go's ParseInt and Atoi: false when it is not one.
bool query_number(const HttpRequest& request, const char* name, int64_t& number);

}  // namespace assay::inproc
