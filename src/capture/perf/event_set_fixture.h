// EventSetTest: an event set over a fake kernel with two CPUs and three threads. Test support only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "capture/perf/event_set.h"
#include "capture/perf/fake_perf_kernel.h"

namespace assay::capture {

inline EventKind kind_of(const perf_event_attr& attr) {
  if (attr.type == PERF_TYPE_TRACEPOINT) return EventKind::waking;
  if (attr.type == PERF_TYPE_HARDWARE) return EventKind::on_cpu;
  if (attr.config == PERF_COUNT_SW_DUMMY) return EventKind::side_band;
  if (attr.config == PERF_COUNT_SW_CPU_CLOCK) return EventKind::on_cpu;
  if (attr.config == PERF_COUNT_SW_CONTEXT_SWITCHES) return EventKind::off_cpu;
  return EventKind::unknown;
}

class EventSetTest : public testing::Test {
 protected:
  EventSetTest() {
    options_.cpus = {0, 1};
    options_.wakeups = false;  // read from the real machine, as is the next; their tests say so
    options_.switch_tracepoint = false;
  }

  std::unique_ptr<EventSet> open() {
    auto set = EventSet::open(kernel_, options_, [this] { return threads_; });
    if (set) return std::move(*set);
    ADD_FAILURE() << set.error().text();
    return nullptr;
  }
  Error open_fails() {
    auto set = EventSet::open(kernel_, options_, [this] { return threads_; });
    if (!set) return set.error();
    ADD_FAILURE() << "opened";
    return {};
  }
  static std::vector<std::string> topics(const EventSet& set) {
    std::vector<std::string> topics;
    for (const auto& note : set.notes()) topics.push_back(note.topic);
    return topics;
  }
  static model::QualityNote find_note(const EventSet& set, const std::string& topic) {
    for (const auto& note : set.notes()) {
      if (note.topic == topic) return note;
    }
    return {};
  }
  std::vector<const fake::FakePerfKernel::Event*> open_of_kind(EventKind kind) {
    std::vector<const fake::FakePerfKernel::Event*> found;
    for (const auto* event : kernel_.open_events()) {
      if (kind_of(event->attr) == kind) found.push_back(event);
    }
    return found;
  }

  fake::FakePerfKernel kernel_;
  EventOptions options_;
  std::vector<pid_t> threads_{100, 101, 102};
};

}  // namespace assay::capture
