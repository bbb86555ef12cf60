// AnswerCache: the last answers, so that a step back asks nothing of the run again.
//
// Bounded in bytes; what was asked for longest ago goes first, and an answer that would take much
// of the room is not kept. Threads: any.
#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace assay::view {

class AnswerCache {
 public:
  explicit AnswerCache(size_t most_bytes) : most_bytes_(most_bytes) {}

  std::optional<std::string> find(const std::string& question) {
    std::lock_guard held(mutex_);
    auto known = places_.find(question);
    if (known == places_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, known->second);
    return known->second->answer;
  }

  void keep(const std::string& question, const std::string& answer) {
    if (answer.size() > most_bytes_ / 4) return;
    std::lock_guard held(mutex_);
    if (places_.contains(question)) return;
    entries_.push_front({question, answer});
    places_[question] = entries_.begin();
    bytes_ += size_of(entries_.front());
    while (bytes_ > most_bytes_) {
      bytes_ -= size_of(entries_.back());
      places_.erase(entries_.back().question);
      entries_.pop_back();
    }
  }

 private:
  struct Entry {
    std::string question, answer;
  };
  static size_t size_of(const Entry& entry) {
    return 2 * entry.question.size() + entry.answer.size();
  }

  size_t most_bytes_;
  size_t bytes_ = 0;
  std::mutex mutex_;
  std::list<Entry> entries_;  // last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace assay::view
