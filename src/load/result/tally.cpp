#include "load/result/tally.h"

#include <algorithm>

namespace assay::load {

void Tally::add(const Tally& other) {
  ok += other.ok;
  failed += other.failed;
  messages += other.messages;
  bytes_in += other.bytes_in;
  connects += other.connects;
  retried += other.retried;
  for (const auto& [outcome, count] : other.errors) errors[outcome] += count;
  if (first_protocol_fault.empty()) first_protocol_fault = other.first_protocol_fault;
  latency.merge(other.latency);
  lag.merge(other.lag);
  cpu_ns += other.cpu_ns;
  cpu_wait_ns += other.cpu_wait_ns;
  busiest_cpu_ns += other.busiest_cpu_ns;
  busiest_wait_ns += other.busiest_wait_ns;
}

}  // namespace assay::load
