#include "session/lifecycle/periodic_flush.h"

#include <thread>

#include <gtest/gtest.h>

#include "session/testing/fake_writer.h"

namespace assay::session {
namespace {

class PeriodicFlushTest : public ::testing::Test {
 protected:
  static void wait_for(const std::function<bool()>& seen) {
    while (!seen()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  testing::FakeWriter writer_;
};

TEST_F(PeriodicFlushTest, AWriterThatFillsUpIsFlushedAgainAndAgain) {
  writer_.filling = true;
  std::atomic<TimeNs> complete{7};
  PeriodicFlush flush(writer_, [&] { return complete.load(); });
  wait_for([&] { return writer_.flushes >= 1; });
  complete = 9;
  wait_for([&] { return writer_.last_complete == 9; });
  flush.stop();
  int flushes = writer_.flushes;
  flush.stop();
  EXPECT_EQ(writer_.flushes, flushes) << "it has ended";
  EXPECT_FALSE(flush.error());
}

TEST_F(PeriodicFlushTest, TheFirstFailureIsKeptAndTheLast) {
  writer_.filling = true;
  writer_.full = true;
  PeriodicFlush flush(writer_, [] { return TimeNs{1}; });
  wait_for([&] { return flush.error().has_value(); });
  EXPECT_EQ(flush.error()->what, "the disk is full");
  writer_.full = false;
  flush.stop();
  EXPECT_EQ(writer_.flushes, 1) << "nothing is written behind a gap";
  EXPECT_TRUE(flush.error());
}

TEST_F(PeriodicFlushTest, OneThatIsStoppedAtOnceHasFlushedNothing) {
  {
    PeriodicFlush flush(writer_, [] { return TimeNs{1}; });
  }
  EXPECT_EQ(writer_.flushes, 0);
}

}  // namespace
}  // namespace assay::session
