#include "model/time/wait_pieces.h"

#include <initializer_list>

#include <gtest/gtest.h>

namespace assay::model {
namespace {

using enum WaitState;

Wait wait_of(TimeNs start, int64_t duration_ns, int64_t runqueue_ns,
             std::initializer_list<WaitFlag> flags = {}) {
  Wait wait;
  wait.start = start;
  wait.duration_ns = duration_ns;
  wait.runqueue_ns = runqueue_ns;
  for (WaitFlag flag : flags) wait.set(flag);
  return wait;
}

TEST(WaitPieces, ASeenWakeUpSplitsTheWait) {
  WaitPieces pieces(wait_of(100, 50, 20, {WaitFlag::runqueue_known}));
  EXPECT_EQ(pieces.piece(blocked), (TimeSpan{100, 130}));
  EXPECT_EQ(pieces.piece(runqueue), (TimeSpan{130, 150}));
  EXPECT_TRUE(pieces.measured());
}

TEST(WaitPieces, TheWakeUpLiesBetweenBlockedAndRunQueue) {
  Wait wait = wait_of(100, 50, 20, {WaitFlag::runqueue_known});
  wait.wakeup_ns = 5;
  WaitPieces pieces(wait);
  EXPECT_EQ(pieces.piece(blocked), (TimeSpan{100, 125}));
  EXPECT_EQ(pieces.piece(wakeup), (TimeSpan{125, 130}));
  EXPECT_EQ(pieces.piece(runqueue), (TimeSpan{130, 150}));
  EXPECT_EQ(pieces.within({0, 127}).ns(wakeup), 2);
}

TEST(WaitPieces, WithoutAWakeUpAllOfItIsBlockedAndNotMeasured) {
  WaitPieces pieces(wait_of(100, 50, 20));
  EXPECT_EQ(pieces.ns(blocked), 50);
  EXPECT_EQ(pieces.ns(runqueue), 0);
  EXPECT_FALSE(pieces.measured());
}

TEST(WaitPieces, PreemptedAndNewThreadsWaitForACpuOnly) {
  for (WaitFlag flag : {WaitFlag::preempted, WaitFlag::new_thread}) {
    for (int64_t runqueue_ns : {0, 10, 50}) {
      WaitPieces pieces(wait_of(100, 50, runqueue_ns, {flag}));
      EXPECT_EQ(pieces.ns(blocked), 0);
      EXPECT_EQ(pieces.piece(runqueue), (TimeSpan{100, 150}));
      EXPECT_TRUE(pieces.measured());
    }
  }
}

TEST(WaitPieces, CuttingKeepsEachPieceInItsPlace) {
  WaitPieces whole(wait_of(100, 50, 20, {WaitFlag::runqueue_known}));
  WaitPieces middle = whole.within({120, 140});
  EXPECT_EQ(middle.piece(blocked), (TimeSpan{120, 130}));
  EXPECT_EQ(middle.piece(runqueue), (TimeSpan{130, 140}));
  EXPECT_EQ(whole.within({140, 900}).ns(blocked), 0);
  EXPECT_EQ(whole.within({140, 900}).ns(runqueue), 10);
  EXPECT_TRUE(whole.within({150, 900}).empty());
  EXPECT_TRUE(whole.within({0, 100}).empty());
  EXPECT_TRUE(whole.within({140, 120}).empty());
}

TEST(WaitPieces, VisitsInOrderWhatIsNotEmpty) {
  std::vector<WaitState> seen;
  TimeNs at = 100;
  auto visit = [&](WaitState state, const TimeSpan& span) {
    EXPECT_EQ(span.begin_ns, at);
    at = span.end_ns;
    seen.push_back(state);
  };
  WaitPieces(wait_of(100, 50, 20, {WaitFlag::runqueue_known})).for_each(visit);
  EXPECT_EQ(seen, (std::vector<WaitState>{blocked, runqueue}));
  EXPECT_EQ(at, 150);
  at = 0;
  WaitPieces(wait_of(0, 50, 50, {WaitFlag::runqueue_known})).for_each(visit);
  EXPECT_EQ(seen.back(), runqueue);
  EXPECT_EQ(seen.size(), 3u);
  WaitPieces().for_each(visit);
  EXPECT_EQ(seen.size(), 3u);
}

// What a file may say: pieces stay inside the wait, in order, and nothing overflows.
TEST(WaitPieces, HostileNumbersStayInsideTheWait) {
  constexpr int64_t kNumbers[] = {INT64_MIN, INT64_MIN + 1, -7, 0, 1, INT64_MAX - 1, INT64_MAX};
  for (int64_t start : kNumbers) {
    for (int64_t duration : kNumbers) {
      for (int64_t queued : kNumbers) {
        WaitPieces pieces(wait_of(start, duration, queued, {WaitFlag::runqueue_known}));
        EXPECT_EQ(pieces.whole().begin_ns, start);
        EXPECT_GE(pieces.whole().end_ns, start);
        EXPECT_EQ(pieces.ns(blocked) + pieces.ns(runqueue), pieces.whole().ns());
        Wait woken = wait_of(start, duration, 3, {WaitFlag::runqueue_known});
        woken.wakeup_ns = queued;
        WaitPieces with_wakeup(woken);
        EXPECT_EQ(with_wakeup.piece(blocked).begin_ns, start);
        EXPECT_EQ(with_wakeup.piece(blocked).end_ns, with_wakeup.piece(wakeup).begin_ns);
        EXPECT_LE(with_wakeup.piece(wakeup).begin_ns, with_wakeup.piece(wakeup).end_ns);
        EXPECT_EQ(with_wakeup.piece(wakeup).end_ns, with_wakeup.piece(runqueue).begin_ns);
        EXPECT_LE(pieces.piece(blocked).begin_ns, pieces.piece(blocked).end_ns);
        EXPECT_LE(pieces.piece(runqueue).begin_ns, pieces.piece(runqueue).end_ns);
      }
    }
  }
}

TEST(TimeSpan, LengthNeverOverflows) {
  EXPECT_EQ((TimeSpan{INT64_MIN, INT64_MAX}.ns()), INT64_MAX);
  EXPECT_EQ((TimeSpan{INT64_MAX, INT64_MIN}.ns()), 0);
  EXPECT_EQ((TimeSpan{3, 9}.within({5, 20}).ns()), 4);
  EXPECT_EQ((TimeSpan{3, 9}.within({10, 20}).ns()), 0);
}

}  // namespace
}  // namespace assay::model
