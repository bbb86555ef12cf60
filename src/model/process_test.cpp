#include "model/process.h"

#include <gtest/gtest.h>

namespace assay::model {
namespace {

TEST(ProcessName, IsTheMainThreadsAndOnlyWithoutOneTheFiles) {
  Process process;
  EXPECT_EQ(process_name(process), "process");
  process.exe = "/usr/bin/redis-check-rdb";
  EXPECT_EQ(process_name(process), "redis-check-rdb");
  process.exe = "no-directory";
  EXPECT_EQ(process_name(process), "no-directory");
  process.comm = "redis-server";
  EXPECT_EQ(process_name(process), "redis-server");
  process.comm = "kworker/0:1";  // no path
  EXPECT_EQ(process_name(process), "kworker/0:1");
}

}  // namespace
}  // namespace assay::model
