// The C interface with null arguments: an error, and the process continues.
#include <assay/assay.hpp>
#include <gtest/gtest.h>

namespace {

TEST(ApiWithoutArguments, ServingNowhereIsAnError) {
  EXPECT_LT(assay_serve(nullptr, nullptr), 0);
  EXPECT_NE(assay::last_error().find("there is no address"), std::string::npos);
  EXPECT_LT(assay_serve(nullptr, "token"), 0);
  EXPECT_LT(assay_serve("", nullptr), 0);
  EXPECT_LT(assay::serve(nullptr), 0);
  EXPECT_LT(assay::serve(nullptr, nullptr), 0);
  assay_serve_stop();
}

TEST(ApiWithoutArguments, ServesAtTextsOfEveryKind) {
  const std::string address = "127.0.0.1:0", token = "t";
  EXPECT_GT(assay::serve(address, token), 0);
  assay::stop_serving();
  EXPECT_GT(assay::serve("127.0.0.1:0", token), 0);
  assay::stop_serving();
  EXPECT_GT(assay::serve("127.0.0.1:0", nullptr), 0);
  assay::stop_serving();
}

TEST(ApiWithoutArguments, AnErrorWithoutRoomIsNotCopied) {
  assay_serve(nullptr, nullptr);
  EXPECT_EQ(assay_last_error(nullptr, 0), nullptr);
  EXPECT_EQ(assay_last_error(nullptr, 256), nullptr);
  char kept = 'x';
  EXPECT_EQ(assay_last_error(&kept, 0), &kept);
  EXPECT_EQ(kept, 'x');
}

TEST(ApiWithoutArguments, LabelsThatAreNotThereAreEmpty) {
  assay_label_pop(assay_label_push(nullptr, 5, nullptr, 5));
  assay_label_pop(assay_label_push("key", 3, nullptr, 0));
}

TEST(ApiWithoutArguments, ProfilesWithoutAnOutput) {
  EXPECT_LT(assay_cpu_stop(nullptr), 0);
  ASSERT_EQ(assay_cpu_start(0), 0);
  EXPECT_EQ(assay_cpu_stop(nullptr), 0);
  ASSERT_EQ(assay_cpu_start(0), 0);
  assay_output nowhere{};
  EXPECT_LT(assay_cpu_stop(&nowhere), 0);
  EXPECT_NE(assay::last_error().find("neither a file nor a sink"), std::string::npos);
  EXPECT_LT(assay_heap_snapshot(nullptr), 0);
  EXPECT_LT(assay_heap_snapshot(&nowhere), 0);
  EXPECT_FALSE(assay::heap_snapshot(nullptr));
}

}  // namespace
