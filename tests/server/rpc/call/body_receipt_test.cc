#include "server/rpc/call/body_receipt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/support/http2_frames.h"

namespace attendant::server {
namespace body_receipt_test {

using absl::Milliseconds;
using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;

class BodyReceiptTest : public ::testing::Test {
 protected:
  BodyReceiptTest() { Receive("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); }

  BodyReceipt Begin() {
    Budget::Hold permit;
    EXPECT_EQ(admission_.memory().TryTake({"p", 64 * kKiB, HeldFor::kReceiving}, permit),
              Budget::Answer::kTaken);
    ReceivingCall call = {admission_, "p", [](const absl::Status&) {}};
    return BodyReceipt(connection_, std::move(call), {1024 * kKiB, absl::Seconds(10), 256 * kKiB},
                       std::move(permit), start_);
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

  Admission admission_{{.memory = {2048 * kKiB}}};
  const std::shared_ptr<MeteredConnection> connection_ =
      std::make_shared<MeteredConnection>(-1, false, "c");
  const absl::Time start_ = absl::UnixEpoch();
};

TEST_F(BodyReceiptTest, ABodyHasTheTimeOutAndTimeForWhatHasArrived) {
  BodyReceipt receipt = Begin();
  EXPECT_EQ(receipt.next_look() - start_, absl::Seconds(10));
  ReceiveHalf(128 * kKiB);
  EXPECT_TRUE(receipt.Look(start_ + absl::Seconds(10)).ok());
  EXPECT_EQ(receipt.next_look() - start_, Milliseconds(10500));
  const absl::Status status = receipt.Look(start_ + Milliseconds(10500));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 10s and a second for each 262144"));
}

TEST_F(BodyReceiptTest, NoBodyHasMoreTimeThanTheLargest) {
  BodyReceipt receipt = Begin();
  ReceiveHalf(1500 * kKiB);
  EXPECT_TRUE(receipt.Look(start_ + absl::Seconds(13)).ok());
  EXPECT_FALSE(receipt.Look(start_ + absl::Seconds(14)).ok());
}

TEST_F(BodyReceiptTest, ThePermitIsTheAllowance) {
  BodyReceipt receipt = Begin();
  EXPECT_EQ(Held(), 64 * kKiB);
  ReceiveHalf(300 * kKiB);
  EXPECT_EQ(Held(), 320 * kKiB);  // in steps of 64 KiB
  const Budget::Hold permit = receipt.Finish(40 * kKiB);
  EXPECT_EQ(permit.amount(), 64 * kKiB);
}

}  // namespace body_receipt_test
}  // namespace attendant::server
