#include "server/transport/frame_meter.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/http2_frames.h"

namespace attendant::server {
namespace frame_meter_test {

using enum http2::FrameType;
using http2::kEndStream;

std::string Frame(uint8_t type, uint8_t flags, size_t length) {
  std::string frame = {static_cast<char>(length >> 16), static_cast<char>(length >> 8),
                       static_cast<char>(length)};
  frame += {static_cast<char>(type), static_cast<char>(flags), 0, 0, 0, 1};
  return frame + std::string(length, 'x');
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

class FrameMeterTest : public ::testing::Test {
 protected:
  FrameMeterTest() { EXPECT_TRUE(Accept("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); }

  bool Accept(const std::string& received) { return meter_.Accept(received, sent_, now_); }

  absl::Time now_ = absl::UnixEpoch();
  int64_t sent_ = 0;
  FrameMeter meter_{now_,
                    {.header_block_bytes = 1000,
                     .continuations = 2,
                     .first_frames = 10,
                     .frames_per_second = 5,
                     .sent_bytes_per_frame = 32,
                     .most_saved_frames = 20,
                     .half_open_calls = 4}};
};

TEST_F(FrameMeterTest, CallsAndTheirDataCostNothing) {
  const std::string call = Frame(kHeaders, 4, 50) + Frame(kData, 0, 16384) + Frame(kData, 0, 1) +
                           Frame(kData, kEndStream, 0);
  EXPECT_TRUE(Accept(Repeat(call, 1000)));
}

TEST_F(FrameMeterTest, FramesThatBringNothingAreBounded) {
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 10)));
  EXPECT_FALSE(Accept(Frame(kPing, 0, 8)));
  now_ += absl::Seconds(1);
  EXPECT_FALSE(Accept(Frame(kData, 0, 1))) << "a connection that is cut stays so";
}

TEST_F(FrameMeterTest, FewCallsMayBeLeftHalfOpen) {
  const std::string begun = Frame(kHeaders, 4, 20), ended = begun + Frame(kData, kEndStream, 5);
  EXPECT_TRUE(Accept(Repeat(begun, 4)));
  EXPECT_TRUE(Accept(Frame(kData, kEndStream, 5) + Repeat(ended, 100)));
  EXPECT_TRUE(Accept(begun));
  EXPECT_FALSE(Accept(begun));
}

TEST_F(FrameMeterTest, EmptyDataBringsNothing) {
  EXPECT_TRUE(Accept(Repeat(Frame(kData, 0, 0), 10)));
  EXPECT_FALSE(Accept(Frame(kData, 0, 0)));
}

TEST_F(FrameMeterTest, ResetsCostWhatCallsDoNotEarn) {
  const std::string call = Frame(kHeaders, 4, 20) + Frame(kReset, 0, 4);
  EXPECT_TRUE(Accept(Repeat(call, 10)));
  EXPECT_FALSE(Accept(call));
}

TEST_F(FrameMeterTest, TimeGivesFramesButNoMoreThanTheFirst) {
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 10)));
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 5)));
  now_ += absl::Hours(1);
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 10)));
  EXPECT_FALSE(Accept(Frame(kPing, 0, 8)));
}

TEST_F(FrameMeterTest, AnswersGiveFramesUpToABound) {
  sent_ += 1000 * 32;
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 20)));
  now_ += absl::Hours(1);
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 10)));
  sent_ += 2 * 32;
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 2)));
  EXPECT_FALSE(Accept(Frame(kPing, 0, 8)));
}

TEST_F(FrameMeterTest, ABlockOfHeaderFieldsHasFewContinuations) {
  const std::string block =
      Frame(kHeaders, kEndStream, 10) + Repeat(Frame(kContinuation, 0, 10), 2);
  EXPECT_TRUE(Accept(Repeat(block, 100)));
  EXPECT_FALSE(Accept(Frame(kContinuation, 0, 10)));
}

TEST_F(FrameMeterTest, ABlockOfHeaderFieldsHasABoundedLength) {
  const std::string block = Frame(kHeaders, kEndStream, 400) + Frame(kContinuation, 4, 600);
  EXPECT_TRUE(Accept(Repeat(block, 100)));
  EXPECT_FALSE(Accept(Frame(kHeaders, 0, 400) + Frame(kContinuation, 4, 601)));
}

// As TLS or a slow network hands them over.
TEST_F(FrameMeterTest, FramesMayComeInPieces) {
  for (const char byte : Repeat(Frame(kPing, 0, 8) + Frame(kData, 0, 3), 10)) {
    ASSERT_TRUE(Accept({byte}));
  }
  std::string last = Frame(kPing, 0, 8);
  EXPECT_TRUE(Accept(last.substr(0, 8)));
  EXPECT_FALSE(Accept(last.substr(8)));
}

}  // namespace frame_meter_test
}  // namespace attendant::server
