#include "server/transport/frame_meter.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/http2_frames.h"

namespace attendant::server {
namespace frame_meter_test {

using enum http2::FrameType;
using http2::kEndStream;

std::string Frame(uint8_t type, uint8_t flags, size_t length, char stream = 1) {
  std::string frame = {static_cast<char>(length >> 16), static_cast<char>(length >> 8),
                       static_cast<char>(length)};
  frame += {static_cast<char>(type), static_cast<char>(flags), 0, 0, 0, stream};
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

  bool Accept(const std::string& received) { return meter_.Receive(received, now_); }
  // Sends a frame of this many bytes.
  void Send(size_t bytes) { meter_.Send(Frame(kData, 0, bytes - 9)); }

  absl::Time now_ = absl::UnixEpoch();
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
  for (const char stream : {1, 3, 5, 7}) EXPECT_TRUE(Accept(Frame(kHeaders, 4, 20, stream)));
  EXPECT_TRUE(Accept(Frame(kHeaders, kEndStream, 20, 3) + Frame(kData, kEndStream, 5, 5)));
  const std::string ended = Frame(kHeaders, 4, 20, 9) + Frame(kData, kEndStream, 5, 9);
  EXPECT_TRUE(Accept(Repeat(ended, 100)));
  EXPECT_TRUE(Accept(Frame(kHeaders, 4, 20, 11) + Frame(kHeaders, 4, 20, 13)));
  meter_.Send(Frame(kHeaders, kEndStream, 20, 1));  // the client has not ended it
  EXPECT_FALSE(Accept(Frame(kHeaders, 4, 20, 15)));
}

TEST_F(FrameMeterTest, CallsWithABodyThatTheServerResetsAreNotHalfOpen) {
  for (char stream = 1; stream < 100; stream += 2) {
    const bool before = stream % 4 == 1;  // the rest may be on its way before the reset
    ASSERT_TRUE(
        Accept(Frame(kHeaders, 4, 20, stream) + Frame(kData, 0, before ? 1024 : 1000, stream)));
    meter_.Send(Frame(kHeaders, kEndStream, 20, stream) + Frame(kReset, 0, 4, stream));
    ASSERT_TRUE(Accept(Frame(kData, 0, 24, stream)));
  }
}

TEST_F(FrameMeterTest, OtherCallsThatTheServerResetsAreHalfOpen) {
  for (char stream = 1; stream < 9; stream += 2) {
    ASSERT_TRUE(Accept(Frame(kHeaders, 4, 20, stream) + Frame(kData, 0, 1023, stream)));
    meter_.Send(Frame(kHeaders, kEndStream, 20, stream) + Frame(kReset, 0, 4, stream));
  }
  EXPECT_FALSE(Accept(Frame(kHeaders, 4, 20, 9)));
}

TEST_F(FrameMeterTest, CallsAllowWindowUpdatesBeforeAnyResponse) {
  const std::string call =
      Frame(kHeaders, 4, 50) + Repeat(Frame(kWindowUpdate, 0, 4), 4) + Frame(kData, kEndStream, 5);
  EXPECT_TRUE(Accept(Repeat(call, 1000)));
  EXPECT_TRUE(Accept(Repeat(Frame(kWindowUpdate, 0, 4), 10)));
  EXPECT_FALSE(Accept(Frame(kWindowUpdate, 0, 4)));
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
  Send(1000 * 32);
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 20)));
  now_ += absl::Hours(1);
  EXPECT_TRUE(Accept(Repeat(Frame(kPing, 0, 8), 10)));
  Send(2 * 32);
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

// DATA of a message that announces `announced` bytes.
std::string HalfSent(char stream, uint8_t flags, size_t announced, size_t sent) {
  std::string data = Frame(kData, flags, 5 + sent, stream);
  const std::string prefix = {0, static_cast<char>(announced >> 24),
                              static_cast<char>(announced >> 16), static_cast<char>(announced >> 8),
                              static_cast<char>(announced)};
  return data.replace(9, 5, prefix);
}

constexpr int64_t kSent = 300'000;
constexpr int64_t kBeyond = kSent - UnfinishedMessages::kFirstWindow;

TEST_F(FrameMeterTest, CountsUnfinishedMessagesHoweverTheyComeInPieces) {
  const std::string frames = Frame(kHeaders, 4, 20) + HalfSent(1, 0, 1'000'000, kSent) +
                             Frame(kHeaders, 4, 20, 3) + HalfSent(3, 0, 1'000'000, kSent);
  for (const size_t piece : {1, 7, 16'384, 1'000'000}) {
    FrameMeter meter(now_);
    meter.Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", now_);
    for (size_t at = 0; at < frames.size(); at += piece) {
      ASSERT_TRUE(meter.Receive(frames.substr(at, piece), now_));
    }
    EXPECT_EQ(meter.messages().beyond_first_windows(), 2 * kBeyond) << piece;
    EXPECT_EQ(meter.messages().largest(), kSent);
  }
}

TEST_F(FrameMeterTest, EitherEndForgetsWhatItEnds) {
  for (const char stream : {1, 3, 5, 7}) {
    EXPECT_TRUE(Accept(Frame(kHeaders, 4, 20, stream) + HalfSent(stream, 0, 1'000'000, kSent)));
  }
  int64_t left = 4 * kBeyond;
  const auto expect_one_less = [&] {
    EXPECT_EQ(meter_.messages().beyond_first_windows(), left -= kBeyond);
  };
  EXPECT_TRUE(Accept(Frame(kReset, 0, 4, 1)));
  expect_one_less();
  EXPECT_TRUE(Accept(Frame(kData, kEndStream, 0, 3)));
  expect_one_less();
  meter_.Send(Frame(kReset, 0, 4, 5));
  expect_one_less();
  const std::string trailers = Frame(kHeaders, kEndStream | http2::kEndHeaders, 50, 7);
  for (const char byte : trailers) meter_.Send({&byte, 1});
  expect_one_less();
  EXPECT_TRUE(Accept(Frame(kData, 0, 100'000, 5) + Frame(kData, 0, 100'000, 7) +
                     Frame(kData, 0, 100'000, 9)));
  EXPECT_EQ(meter_.messages().beyond_first_windows(), 0);
}

TEST_F(FrameMeterTest, AMessageIsUnfinishedUntilItsLastFrameIsWhole) {
  EXPECT_TRUE(Accept(Frame(kHeaders, 4, 20)));
  std::string last = HalfSent(1, kEndStream, kSent, kSent);
  EXPECT_TRUE(Accept(last.substr(0, last.size() - 1)));
  EXPECT_EQ(meter_.messages().beyond_first_windows(), kBeyond - 1);
  EXPECT_TRUE(Accept(last.substr(last.size() - 1)));
  EXPECT_EQ(meter_.messages().beyond_first_windows(), 0);
}

}  // namespace frame_meter_test
}  // namespace attendant::server
