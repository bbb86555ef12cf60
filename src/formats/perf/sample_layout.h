// How an event's attributes lay out its samples and the trailers of its other records.
//
// Pure functions over one record's bytes; false and nullopt when the bytes end too soon.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "formats/perf/perf_data.h"

namespace assay::formats {

// The event's id in a sample, or in another record's trailer; nullopt when records carry none.
std::optional<uint64_t> id_of_sample(const perf_event_attr& attr, std::string_view body);
std::optional<uint64_t> id_of_trailer(const perf_event_attr& attr, std::string_view body);

// The trailer that sample_id_all puts behind every record that is no sample.
bool parse_trailer(const perf_event_attr& attr, std::string_view body, PerfHead& head);

// Holds the chain of the sample parsed last.
struct SampleScratch {
  std::vector<uint64_t> kernel, user;
};
bool parse_sample(const perf_event_attr& attr, uint16_t misc, std::string_view body, PerfHead& head,
                  PerfSample& sample, SampleScratch& scratch);
// Only time and period: for the index.
bool parse_sample_head(const perf_event_attr& attr, std::string_view body, PerfHead& head,
                       uint64_t& period);

}  // namespace assay::formats
