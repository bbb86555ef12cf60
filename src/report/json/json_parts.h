// The parts of the JSON report that are made elsewhere than in json.cpp. Internal to the room.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/report.h"

namespace assay::report {

using Json = nlohmann::ordered_json;

// Frames leaf first.
Json json_frames(const std::vector<analysis::FrameText>& leaf_first);
Json json_interval(const analysis::Estimate& e);

Json json_parallelism(const analysis::Report& report);  // null when not known
Json json_idle_decisions(const analysis::Report& report);
Json json_verdict(const analysis::Report& report);
Json json_load(const analysis::Report& report);
Json json_vitals(const analysis::Report& report);
Json json_categories(const analysis::Report& report);
Json json_locks(const analysis::Report& report);
Json json_heap(const analysis::Report& report);  // null when nothing was sampled
Json json_findings(const analysis::Report& report);
Json json_resources(const analysis::Report& report);  // null where nothing is known
Json json_not_bottlenecks(const analysis::Report& report);
Json json_suspects(const analysis::Report& report);

}  // namespace assay::report
