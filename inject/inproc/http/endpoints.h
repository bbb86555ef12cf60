// The pages under /debug/pprof/, as Go's net/http/pprof has them, and gperftools' under /pprof/.
//
// Runs on the server's threads. Errors are text with X-Go-Pprof: 1 and the status that Go gives.
#pragma once

#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

void answer_pprof(HttpExchange& exchange);

// An error as Go's handlers write it.
void answer_error(HttpExchange& exchange, int status, const char* sentence);
// To the page of /debug/pprof/, with the query, which may hold the token.
void redirect_to_index(HttpExchange& exchange);
// The whole number of a query value as Go's ParseInt and Atoi read it: false when it is not one.
bool query_number(const HttpRequest& request, const char* name, int64_t& number);

}  // namespace assay::inproc
