#include "load/grpc/grpc_answer.h"

#include <gtest/gtest.h>

#include "load/workload.h"

namespace assay::load {
namespace {

TEST(GrpcAnswer, CountsMessagesWhateverThePieces) {
  std::string bytes = grpc_frame("one") + grpc_frame("") + grpc_frame(std::string(1000, 'x'));
  for (size_t piece : {bytes.size(), size_t{1}, size_t{4}, size_t{7}}) {
    GrpcAnswer answer;
    uint32_t counted = 0;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      counted += answer.feed(std::string_view(bytes).substr(at, piece));
    }
    EXPECT_EQ(counted, 3U);
    EXPECT_TRUE(answer.between_messages());
    EXPECT_FALSE(answer.bad());
  }
}

TEST(GrpcAnswer, CutAndMalformed) {
  GrpcAnswer answer;
  answer.feed(grpc_frame("hello").substr(0, 7));
  EXPECT_FALSE(answer.between_messages());
  answer.begin();
  answer.feed("\xff");
  EXPECT_TRUE(answer.bad());
  answer.begin();
  answer.feed(std::string_view("\0\xff\xff\xff\xff", 5));
  EXPECT_TRUE(answer.bad());
}

TEST(GrpcAnswer, Status) {
  GrpcAnswer answer;
  EXPECT_EQ(answer.status(), -1);
  for (const char* wrong : {"", "x", "-1", "1x", "99999999999"}) {
    answer.set_status(wrong);
    EXPECT_EQ(answer.status(), -1) << wrong;
  }
  answer.set_status("14");
  EXPECT_EQ(answer.status(), 14);
}

}  // namespace
}  // namespace assay::load
