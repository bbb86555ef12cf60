#include "run/run_kind.h"

#include <gtest/gtest.h>

#include "run/reader.h"

namespace assay::run {
namespace {

Contents taken_by(const std::string& backend) {
  Contents contents;
  contents.info.backend = backend;
  contents.has_time = true;
  return contents;
}

Contents counting(const std::string& unit) {
  Contents contents = taken_by("import pprof");
  contents.facts.push_back({"import", "unit", unit});
  return contents;
}

TEST(RunKind, IsToldByWhoTookTheRunAndWhatItHolds) {
  EXPECT_EQ(run_kind(taken_by("bpf")), RunKind::recorded);
  EXPECT_EQ(run_kind(taken_by("perf_event")), RunKind::recorded);
  EXPECT_EQ(run_kind(taken_by("heap")), RunKind::heap);
  EXPECT_EQ(run_kind(taken_by("import perf.data")), RunKind::imported_time);
  Contents heap = taken_by("import pprof");
  heap.heap_imported = true;
  EXPECT_EQ(run_kind(heap), RunKind::imported_time) << "it holds time as well";
  heap.has_time = false;
  EXPECT_EQ(run_kind(heap), RunKind::imported_heap);
}

TEST(RunKind, SamplesAndCyclesStandForTime) {
  for (const char* unit : {"samples", "cycles", "cpu-clock", "none", ""}) {
    EXPECT_EQ(run_kind(counting(unit)), RunKind::imported_time) << unit;
    EXPECT_EQ(counted_unit(counting(unit)), "") << unit;
  }
  for (const char* unit : {"bytes", "goroutine", "page-faults"}) {
    EXPECT_EQ(run_kind(counting(unit)), RunKind::imported_counts) << unit;
    EXPECT_EQ(counted_unit(counting(unit)), unit);
  }
}

// A run that Assay recorded measures time, whatever a fact says.
TEST(RunKind, OnlyAnImportCountsSomethingElse) {
  Contents contents = counting("bytes");
  contents.info.backend = "bpf";
  EXPECT_EQ(run_kind(contents), RunKind::recorded);
  EXPECT_EQ(counted_unit(contents), "");
}

TEST(RunKind, WhatFollowsFromTheKind) {
  struct Row {
    RunKind kind;
    bool imported, heap_alone, counts;
  };
  for (const Row& row :
       {Row{RunKind::recorded, false, false, false}, Row{RunKind::heap, false, true, false},
        Row{RunKind::imported_time, true, false, false},
        Row{RunKind::imported_counts, true, false, true},
        Row{RunKind::imported_heap, true, true, false}}) {
    EXPECT_EQ(is_imported(row.kind), row.imported) << static_cast<int>(row.kind);
    EXPECT_EQ(is_heap_alone(row.kind), row.heap_alone) << static_cast<int>(row.kind);
    EXPECT_EQ(is_of_counts(row.kind), row.counts) << static_cast<int>(row.kind);
  }
}

}  // namespace
}  // namespace assay::run
