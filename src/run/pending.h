// Pending: the data that a Writer has received since its last flush. A plain value, guarded by its
// owner.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/address_space.h"
#include "model/data_name.h"
#include "model/heap/heap.h"
#include "model/location.h"
#include "model/loss.h"
#include "model/module.h"
#include "model/process.h"
#include "model/run_info.h"
#include "model/sample.h"
#include "model/series.h"
#include "model/stack.h"
#include "run/reader.h"

namespace assay::run {

struct SourceLine {
  std::string file;
  uint32_t line = 0;
  std::string text;
};

struct Pending {
  std::optional<model::RunInfo> info;
  std::vector<model::Fact> facts;
  std::vector<model::QualityNote> notes;
  std::vector<model::Process> processes;
  std::vector<model::Thread> threads;
  std::vector<model::Module> modules;
  std::vector<std::pair<model::FrameId, model::Frame>> frames;
  std::vector<std::pair<model::StackId, model::StackNode>> stacks;
  std::vector<TimedMapping> mappings;
  std::vector<std::pair<model::FrameId, std::vector<model::Location>>> locations;
  std::vector<model::Sample> samples;
  std::vector<model::Wait> waits;
  std::vector<model::HeapAlloc> heap_allocs;
  std::vector<model::HeapFree> heap_frees;
  std::vector<model::HeapSnapshot> heap_snapshots;
  std::vector<model::HeapSum> heap_sums;
  std::optional<std::vector<model::Wait>> open_waits;  // replaces those of the flush before
  std::vector<model::Series> series;
  std::vector<model::Point> points;
  std::vector<model::Loss> losses;
  std::vector<model::DataName> data_names;
  std::vector<SourceLine> source_lines;

  // Its size in a file, roughly; never less.
  int64_t bytes_at_most() const;
  // Empties it and keeps the memory, unless it has grown large.
  void clear();
};

}  // namespace assay::run
