// RecordingSink: keeps what a CounterPoller writes, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "capture/counters/series_book.h"

namespace assay::capture {

class RecordingSink : public CounterSink {
 public:
  void add_series(const model::Series& series) override { series_.push_back(series); }
  void add_point(const model::Point& point) override { points_[point.series].push_back(point); }
  void add_note(const model::QualityNote& note) override { notes_.push_back(note); }
  void add_fact(const model::Fact& fact) override {
    std::erase_if(facts_, [&](const model::Fact& old) {
      return old.scope == fact.scope && old.key == fact.key;
    });
    facts_.push_back(fact);
  }

  const model::Series* find(model::SeriesScope scope, uint32_t owner, const std::string& name,
                            const std::string& label = "") const {
    for (const model::Series& series : series_) {
      if (series.scope == scope && series.owner == owner && series.name == name &&
          series.label == label) {
        return &series;
      }
    }
    return nullptr;
  }
  // The points of a series; empty when there is no such series.
  std::vector<model::Point> points(model::SeriesScope scope, uint32_t owner,
                                   const std::string& name, const std::string& label = "") const {
    const model::Series* series = find(scope, owner, name, label);
    if (series == nullptr) return {};
    auto found = points_.find(series->id);
    return found == points_.end() ? std::vector<model::Point>{} : found->second;
  }
  std::vector<int64_t> values(model::SeriesScope scope, uint32_t owner, const std::string& name,
                              const std::string& label = "") const {
    std::vector<int64_t> values;
    for (const model::Point& point : points(scope, owner, name, label))
      values.push_back(point.value);
    return values;
  }
  const std::vector<model::Series>& series() const { return series_; }
  const std::vector<model::QualityNote>& notes() const { return notes_; }
  const std::vector<model::Fact>& facts() const { return facts_; }
  bool noted(const std::string& topic) const {
    for (const model::QualityNote& note : notes_) {
      if (note.topic == topic) return true;
    }
    return false;
  }

 private:
  std::vector<model::Series> series_;
  std::map<model::SeriesId, std::vector<model::Point>> points_;
  std::vector<model::QualityNote> notes_;
  std::vector<model::Fact> facts_;
};

}  // namespace assay::capture
