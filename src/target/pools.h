// Pools: threads that differ only in a number are one group.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::target {

// Each run of digits becomes "*": "grpc_worker-1" → "grpc_worker-*", "pool-3-thread-12" →
// "pool-*-thread-*", "DrogonIoLoop3" → "DrogonIoLoop*". A name without digits is its own pool.
std::string pool_name(std::string_view thread_name);

// The pool of each name, given all names: a number that all members share stays ("http2-1",
// "http2-2" → "http2-*"), and a pool with one distinct name keeps that name ("utf8conv").
std::vector<std::string> pool_names(const std::vector<std::string>& thread_names);

}  // namespace assay::target
