// Waits that are open when a capture is cut off are in the run, once, and gone when it is finished.
#include <gtest/gtest.h>

#include "run/reader.h"
#include "run/run_fixture.h"
#include "run/writer.h"

namespace assay::run {
namespace {

constexpr TimeNs kAt = kFixtureBegin;

model::Wait wait_of(uint32_t thread, TimeNs start, int64_t duration_ns, bool open) {
  model::Wait wait;
  wait.thread = {thread};
  wait.start = start;
  wait.duration_ns = duration_ns;
  if (open) wait.set(model::WaitFlag::open_end);
  return wait;
}

class OpenWaits : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = Writer::create(path_, fixture_info(), true);
    ASSERT_TRUE(writer) << writer.error().text();
    writer_ = std::move(*writer);
    add_fixture_tables(*writer_);
  }
  void flush(TimeNs until) { ASSERT_TRUE(writer_->flush(until)); }
  // As after a kill: the file is closed without finish().
  std::vector<model::Wait> waits() {
    writer_.reset();
    std::vector<model::Wait> rows;
    auto reader = Reader::open(path_);
    EXPECT_TRUE(reader) << reader.error().text();
    if (!reader) return rows;
    auto done =
        (*reader)->for_each_wait({}, [&](const model::Wait& wait) { rows.push_back(wait); });
    EXPECT_TRUE(done) << done.error().text();
    return rows;
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_.file("open.assay");
  std::unique_ptr<Writer> writer_;
};

TEST_F(OpenWaits, LastUntilTheLastFlush) {
  writer_->put_open_waits({wait_of(1, kAt, 100, true)});
  flush(kAt + 500);
  flush(kAt + 900);  // no new waits were given: still open
  auto rows = waits();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].duration_ns, 900);
  EXPECT_TRUE(rows[0].has(model::WaitFlag::open_end));
}

TEST_F(OpenWaits, AWaitThatEndedIsThereOnce) {
  writer_->put_open_waits({wait_of(1, kAt, 100, true), wait_of(2, kAt, 100, true)});
  flush(kAt + 500);
  writer_->add_wait(wait_of(1, kAt, 700, false));
  flush(kAt + 900);
  auto rows = waits();
  ASSERT_EQ(rows.size(), 2u);
  int open = 0;
  for (const model::Wait& wait : rows) open += wait.has(model::WaitFlag::open_end);
  EXPECT_EQ(open, 1);
}

TEST_F(OpenWaits, ANewSetReplacesTheOld) {
  writer_->put_open_waits({wait_of(1, kAt, 100, true), wait_of(2, kAt, 100, true)});
  flush(kAt + 500);
  writer_->put_open_waits({wait_of(2, kAt, 600, true)});
  flush(kAt + 900);
  auto rows = waits();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].thread.value, 2u);
}

TEST_F(OpenWaits, AFinishedRunHasNone) {
  writer_->put_open_waits({wait_of(1, kAt, 100, true)});
  flush(kAt + 500);
  ASSERT_TRUE(writer_->finish(fixture_info()));
  EXPECT_TRUE(waits().empty());
}

}  // namespace
}  // namespace assay::run
