#include "capture/perf/ordered_records.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::capture {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What a test's record holds instead of the kernel's layout: OrderedRecords never looks inside.
struct Mark {
  TimeNs time = 0;
  uint64_t arrival = 0;  // counted over the whole test
};

void put(Batch& batch, Mark mark) {
  auto bytes = std::as_bytes(std::span(&mark, 1));
  batch.entries.push_back({mark.time, static_cast<uint32_t>(batch.bytes.size()), sizeof mark});
  batch.bytes.insert(batch.bytes.end(), bytes.begin(), bytes.end());
}

Batch batch_of(TimeNs drained_at, std::initializer_list<Mark> marks) {
  Batch batch;
  batch.drained_at = drained_at;
  for (Mark mark : marks) put(batch, mark);
  return batch;
}

class OrderedRecordsTest : public testing::Test {
 protected:
  OrderedRecords::Visit visit_ = [this](std::span<const std::byte> record) {
    Mark mark;
    ASSERT_EQ(record.size(), sizeof mark);
    std::memcpy(&mark, record.data(), sizeof mark);
    seen_.push_back(mark);
  };
  std::vector<TimeNs> take_times() {
    std::vector<TimeNs> times;
    for (const Mark& mark : seen_) times.push_back(mark.time);
    seen_.clear();
    return times;
  }

  OrderedRecords records_;
  std::vector<Mark> seen_;
};

TEST_F(OrderedRecordsTest, ARecordWaitsUntilAllRingsWereReadTwiceSince) {
  records_.add(batch_of(100, {{90, 0}, {105, 1}}), visit_);
  EXPECT_THAT(take_times(), IsEmpty());
  records_.add(batch_of(200, {{95, 2}, {150, 3}}), visit_);
  EXPECT_THAT(take_times(), ElementsAre(90, 95));
  EXPECT_EQ(records_.released_until(), 100);
  records_.add(batch_of(300, {}), visit_);
  EXPECT_THAT(take_times(), ElementsAre(105, 150));
  records_.add(batch_of(400, {{250, 4}, {350, 5}}), visit_);
  EXPECT_THAT(take_times(), ElementsAre(250));
  records_.flush(visit_);
  EXPECT_THAT(take_times(), ElementsAre(350));
  EXPECT_EQ(records_.late(), 0u);
}

TEST_F(OrderedRecordsTest, ALateRecordIsCountedAndReleasedAtOnce) {
  records_.add(batch_of(100, {}), visit_);
  records_.add(batch_of(200, {}), visit_);
  EXPECT_EQ(records_.released_until(), 100);
  records_.add(batch_of(300, {{99, 0}, {100, 1}, {150, 2}}), visit_);
  EXPECT_EQ(records_.late(), 1u);
  EXPECT_THAT(take_times(), ElementsAre(99, 100, 150));
}

TEST_F(OrderedRecordsTest, EqualTimesKeepTheOrderOfArrival) {
  records_.add(batch_of(100, {{50, 0}, {60, 1}, {50, 2}}), visit_);
  records_.add(batch_of(200, {{50, 3}, {60, 4}}), visit_);
  std::vector<uint64_t> arrivals;
  for (const Mark& mark : seen_) arrivals.push_back(mark.arrival);
  EXPECT_THAT(arrivals, ElementsAre(0, 2, 3, 1, 4));
}

TEST_F(OrderedRecordsTest, FlushingNothingIsFine) {
  records_.flush(visit_);
  records_.add({}, visit_);
  records_.flush(visit_);
  EXPECT_THAT(seen_, IsEmpty());
}

// Rings are read one after another; a record appears in its ring some time after its own time.
// With delays below the length of a round, order is exact; above it, lateness is counted.
struct Arrivals {
  TimeNs longest_delay;
  int rings;
  uint64_t seed;
};

class OrderedRecordsProperty : public OrderedRecordsTest,
                               public testing::WithParamInterface<Arrivals> {
 protected:
  static constexpr TimeNs kRound = 1000;
  static constexpr int kRounds = 400;

  // Batches as a reader would bring them: per ring in order of appearance, stamped with the round.
  std::vector<Batch> batches(uint64_t& written) {
    struct Due {
      TimeNs visible_at;
      TimeNs time;
    };
    std::mt19937_64 random(GetParam().seed);
    std::vector<std::vector<Due>> rings(GetParam().rings);
    for (auto& ring : rings) {
      for (TimeNs time = 0; time < kRound * kRounds; time += static_cast<TimeNs>(random() % 200)) {
        ring.push_back(
            {time + static_cast<TimeNs>(random() % (GetParam().longest_delay + 1)), time});
      }
      std::stable_sort(ring.begin(), ring.end(),
                       [](auto& a, auto& b) { return a.visible_at < b.visible_at; });
    }
    std::vector<Batch> batches;
    std::vector<size_t> next(rings.size());
    for (int round = 1; round <= kRounds + 10; ++round) {
      Batch& batch = batches.emplace_back();
      batch.drained_at = round * kRound;
      for (size_t r = 0; r < rings.size(); ++r) {
        // Each ring is read a little later than the one before.
        TimeNs read_at = batch.drained_at + static_cast<TimeNs>(r) * 10;
        while (next[r] < rings[r].size() && rings[r][next[r]].visible_at <= read_at) {
          put(batch, {rings[r][next[r]++].time, written++});
        }
      }
    }
    return batches;
  }
};

TEST_P(OrderedRecordsProperty, NothingIsLostAndLatenessIsCounted) {
  uint64_t written = 0;
  for (Batch& batch : batches(written)) {
    size_t first = seen_.size();
    records_.add(std::move(batch), visit_);
    EXPECT_TRUE(std::is_sorted(seen_.begin() + static_cast<ptrdiff_t>(first), seen_.end(),
                               [](auto& a, auto& b) { return a.time < b.time; }));
    for (size_t i = first; i < seen_.size(); ++i)
      EXPECT_LE(seen_[i].time, records_.released_until());
  }
  records_.flush(visit_);
  EXPECT_EQ(seen_.size(), written);
  // Out of order = earlier than something released in an earlier round, which is what late() counts
  // at most; equal times are in order of arrival.
  uint64_t out_of_order = 0;
  TimeNs highest = INT64_MIN;
  for (size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].time < highest) ++out_of_order;
    highest = std::max(highest, seen_[i].time);
    bool as_arrived =
        i == 0 || seen_[i].time != seen_[i - 1].time || seen_[i - 1].arrival < seen_[i].arrival;
    EXPECT_TRUE(as_arrived) << "two records of time " << seen_[i].time;
  }
  if (GetParam().longest_delay <= kRound) {
    EXPECT_EQ(out_of_order, 0u);
    EXPECT_EQ(records_.late(), 0u);
  } else {
    EXPECT_GT(out_of_order, 0u);
    EXPECT_GE(records_.late(), out_of_order);
  }
  std::vector<uint64_t> arrivals;
  for (const Mark& mark : seen_) arrivals.push_back(mark.arrival);
  std::sort(arrivals.begin(), arrivals.end());
  for (uint64_t i = 0; i < arrivals.size(); ++i) ASSERT_EQ(arrivals[i], i) << "each record once";
}

INSTANTIATE_TEST_SUITE_P(Delays, OrderedRecordsProperty,
                         testing::Values(Arrivals{0, 1, 1}, Arrivals{0, 4, 2}, Arrivals{50, 2, 3},
                                         Arrivals{999, 8, 4}, Arrivals{1000, 3, 5},
                                         Arrivals{5000, 4, 6}));

TEST_F(OrderedRecordsTest, MemoryIsReleasedWithTheLastRecordOfABatch) {
  for (TimeNs round = 1; round <= 1000; ++round) {
    records_.add(batch_of(round * 100, {{round * 100 - 50, 0}}), visit_);
    EXPECT_LE(records_.held_bytes(), 2 * sizeof(Mark)) << "round " << round;
  }
  records_.flush(visit_);
  EXPECT_EQ(records_.held_bytes(), 0u);
  EXPECT_EQ(seen_.size(), 1000u);
}

// A record from a damaged ring may carry any time: it must not keep the memory of all later
// records.
TEST_F(OrderedRecordsTest, ATimeInTheFarFutureDoesNotHoldLaterBatches) {
  records_.add(batch_of(100, {{INT64_MAX - 1, 0}, {90, 1}}), visit_);
  for (TimeNs round = 2; round <= 1000; ++round) {
    records_.add(batch_of(round * 100, {{round * 100 - 50, 0}}), visit_);
    ASSERT_LE(records_.held_bytes(), 4 * sizeof(Mark)) << "round " << round;
  }
  EXPECT_EQ(seen_.size(), 999u);
  records_.flush(visit_);
  EXPECT_EQ(seen_.size(), 1001u);
  EXPECT_EQ(seen_.back().time, INT64_MAX - 1);
  EXPECT_EQ(records_.held_bytes(), 0u);
}

}  // namespace
}  // namespace assay::capture
