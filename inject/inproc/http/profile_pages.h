// The profiles that are always kept, by name, and the page that lists them.
#pragma once

#include <string_view>

#include "inject/inproc/http/http_server.h"

namespace assay::inproc {

void answer_index(HttpExchange& exchange);
// heap, allocs, mutex, block, threadcreate, goroutine; anything else is 404.
void answer_named_profile(HttpExchange& exchange, std::string_view name);

}  // namespace assay::inproc
