#include "server/rpc/call/message_receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/http2_frames.h"

namespace attendant::server {
namespace message_receiver_test {

using absl::Milliseconds;
using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;

class MessageReceiverTest : public ::testing::Test {
 protected:
  MessageReceiverTest() { Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); }

  MessageReceiver Begin() {
    Budget::Reservation permit;
    EXPECT_EQ(admission_.memory().TryTake({"p", 64 * kKiB, HeldFor::kReceiving}, permit),
              Budget::Answer::kTaken);
    ReceivingCall call = {admission_, "p", [](const absl::Status&) {}};
    return MessageReceiver(connection_, std::move(call), limits_, std::move(permit), start_);
  }
  void Receive(const std::string& bytes) const { EXPECT_TRUE(connection_->Receive(bytes)); }
  // Begins a message of 16 MiB, of which this much arrives.
  void ReceiveHalf(int64_t bytes) const {
    const auto length = static_cast<size_t>(bytes + 5);
    const std::string size = {static_cast<char>(length >> 16), static_cast<char>(length >> 8),
                              static_cast<char>(length)};
    Receive(std::string("\0\0\0\1\4\0\0\0\1", 9) + size + std::string("\0\0\0\0\0\1", 6) +
            std::string("\0\1\0\0\0", 5) + std::string(static_cast<size_t>(bytes), 'x'));
  }
  int64_t Held() const { return admission_.memory().counts().held_for(HeldFor::kReceiving); }

  static ServiceLimits Limits() {
    ServiceLimits limits;
    limits.max_request_bytes = 1024 * kKiB;
    limits.receive_timeout = absl::Seconds(10);
    limits.min_receive_rate = 256 * kKiB;
    return limits;
  }

  const ServiceLimits limits_ = Limits();
  Admission admission_{{.memory = {2048 * kKiB}}};
  const std::shared_ptr<MeteredConnection> connection_ =
      std::make_shared<MeteredConnection>(-1, false, "c");
  const absl::Time start_ = absl::UnixEpoch();
};

TEST_F(MessageReceiverTest, ABodyHasTheTimeOutAndTimeForWhatHasArrived) {
  MessageReceiver receipt = Begin();
  EXPECT_EQ(receipt.next_look() - start_, absl::Seconds(10));
  ReceiveHalf(128 * kKiB);
  EXPECT_TRUE(receipt.Look(start_ + absl::Seconds(10)).ok());
  EXPECT_EQ(receipt.next_look() - start_, Milliseconds(10500));
  const absl::Status status = receipt.Look(start_ + Milliseconds(10500));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 10s and a second for each 262144"));
}

TEST_F(MessageReceiverTest, NoBodyHasMoreTimeThanTheLargest) {
  MessageReceiver receipt = Begin();
  ReceiveHalf(1500 * kKiB);
  EXPECT_TRUE(receipt.Look(start_ + absl::Seconds(13)).ok());
  EXPECT_FALSE(receipt.Look(start_ + absl::Seconds(14)).ok());
}

TEST_F(MessageReceiverTest, ThePermitIsTheAllowance) {
  MessageReceiver receipt = Begin();
  EXPECT_EQ(Held(), 64 * kKiB);
  ReceiveHalf(300 * kKiB);
  EXPECT_EQ(Held(), 320 * kKiB);  // in steps of 64 KiB
  const Budget::Reservation permit = receipt.Finish(40 * kKiB);
  EXPECT_EQ(permit.amount(), 64 * kKiB);
}

TEST_F(MessageReceiverTest, ASmallMessageIsAwaitedAndHasNoMoreTime) {
  int given_up = 0;
  ReceivingCall call = {admission_, "p", [&](const absl::Status& status) {
                          EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
                          ++given_up;
                        }};
  std::vector<std::unique_ptr<MessageReceiver>> receipts;
  for (int i = 0; i < 513; ++i) {
    receipts.push_back(std::make_unique<MessageReceiver>(connection_, call, limits_,
                                                         Budget::Reservation(), start_));
  }
  EXPECT_EQ(given_up, 1);
  MessageReceiver& last = *receipts.back();
  ReceiveHalf(1024 * kKiB);
  EXPECT_TRUE(last.Look(start_ + Milliseconds(1999)).ok());
  EXPECT_EQ(last.Look(start_ + absl::Seconds(2)).message(),
            "the request's body did not arrive in time");
  EXPECT_TRUE(last.Finish(1024 * kKiB).empty());
}

}  // namespace message_receiver_test
}  // namespace attendant::server
