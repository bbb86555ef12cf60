#include "capture/counters/series_book.h"

#include <string>

namespace assay::capture {

void SeriesBook::put(Track& track, const SeriesSpec& spec, uint32_t owner, std::string_view label,
                     TimeNs time_ns, int64_t value) {
  if (track.id == Track::kUnregistered) {
    track.id = next_id_.fetch_add(1, std::memory_order_relaxed);
    sink_.add_series({.id = {track.id},
                      .scope = spec.scope,
                      .kind = spec.kind,
                      .owner = owner,
                      .name = spec.name,
                      .unit = spec.unit,
                      .label = std::string(label)});
  } else if (value == track.value && !write_everything_) {
    track.held_back = true;
    track.time_ns = time_ns;
    return;
  } else if (value != track.value) {
    settle(track);
  }
  sink_.add_point({{track.id}, time_ns, value});
  track.held_back = false;
  track.time_ns = time_ns;
  track.value = value;
}

void SeriesBook::settle(Track& track) {
  if (!track.held_back) return;
  sink_.add_point({{track.id}, track.time_ns, track.value});
  track.held_back = false;
}

}  // namespace assay::capture
