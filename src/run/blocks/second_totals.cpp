#include "run/blocks/second_totals.h"

#include <algorithm>
#include <tuple>

#include "model/time/wait_pieces.h"
#include "run/blocks/byte_stream.h"

namespace assay::run {
namespace {

int64_t second_of(TimeNs time) {
  int64_t second = time / kNsPerSecond;
  return time % kNsPerSecond < 0 ? second - 1 : second;
}

// How far into its second a time is, in ns.
int64_t into_second(TimeNs time) {
  int64_t rest = time % kNsPerSecond;
  return rest < 0 ? rest + kNsPerSecond : rest;
}

int64_t SecondTotal::*member_of(model::WaitState state) {
  bool queued = state == model::WaitState::runqueue;
  return queued ? &SecondTotal::runqueue_ns : &SecondTotal::blocked_ns;
}

// Entries in order of arrival; neighbours of one (second, thread) share one, so a busy thread's
// thousand waits a second cost one entry.
class Entries {
 public:
  SecondTotal& at(int64_t second, uint32_t thread) {
    size_t first = all_.size() > 2 ? all_.size() - 2 : 0;
    for (size_t i = all_.size(); i-- > first;) {
      if (all_[i].second == second && all_[i].thread == thread) return all_[i];
    }
    return all_.emplace_back(SecondTotal{.second = second, .thread = thread});
  }
  // Adds the piece, which is not empty, to the member, in its first and last second.
  void add(uint32_t thread, const model::TimeSpan& piece, int64_t SecondTotal::*member) {
    TimeNs last_ns = piece.end_ns - 1;
    int64_t first = second_of(piece.begin_ns), last = second_of(last_ns);
    if (first == last) {
      at(first, thread).*member += piece.ns();
      return;
    }
    at(first, thread).*member += kNsPerSecond - into_second(piece.begin_ns);
    at(last, thread).*member += into_second(last_ns) + 1;
  }
  std::vector<SecondTotal> take() {
    auto key = [](const SecondTotal& t) { return std::tuple(t.second, t.thread); };
    std::sort(all_.begin(), all_.end(),
              [&](const SecondTotal& a, const SecondTotal& b) { return key(a) < key(b); });
    std::vector<SecondTotal> merged;
    for (const SecondTotal& entry : all_) {
      if (merged.empty() || key(merged.back()) != key(entry)) {
        merged.push_back(entry);
        continue;
      }
      SecondTotal& total = merged.back();
      total.samples += entry.samples;
      total.weight_ns = wrapping_add(total.weight_ns, entry.weight_ns);
      total.waits += entry.waits;
      total.blocked_ns += entry.blocked_ns;
      total.runqueue_ns += entry.runqueue_ns;
    }
    return merged;
  }

 private:
  std::vector<SecondTotal> all_;
};

}  // namespace

std::vector<SecondTotal> second_totals(std::span<const model::Sample> samples,
                                       std::span<const model::Wait> waits) {
  Entries entries;
  for (const model::Sample& sample : samples) {
    SecondTotal& total = entries.at(second_of(sample.time), sample.thread.value);
    ++total.samples;
    total.weight_ns = wrapping_add(total.weight_ns, sample.weight_ns);
  }
  for (const model::Wait& wait : waits) {
    uint32_t thread = wait.thread.value;
    ++entries.at(second_of(wait.start), thread).waits;
    model::WaitPieces(wait).for_each([&](model::WaitState state, const model::TimeSpan& piece) {
      entries.add(thread, piece, member_of(state));
    });
  }
  return entries.take();
}

}  // namespace assay::run
