#include "server/rpc/call/body_receipt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::server {
namespace body_receipt_test {

using absl::Milliseconds;
using ::testing::HasSubstr;

constexpr int64_t kKiB = 1024;

class BodyReceiptTest : public ::testing::Test {
 protected:
  // The kernel tells what has been received unless `known` is false.
  BodyReceipt Begin(bool known = true) {
    if (known) {
      admission_.unfinished_bodies().Watch(
          [this](const std::string&) { return std::optional<int64_t>(received_); });
    }
    Budget::Hold permit;
    EXPECT_EQ(admission_.memory().TryTake({"p", 64 * kKiB, HeldFor::kReceiving}, permit),
              Budget::Answer::kTaken);
    return BodyReceipt(admission_, {1024 * kKiB, absl::Seconds(10), 256 * kKiB}, "p", "c",
                       std::move(permit), start_);
  }
  int64_t Held() const { return admission_.memory().counts().held_for(HeldFor::kReceiving); }

  Admission admission_{{.memory = {2048 * kKiB}}};
  int64_t received_ = 0;
  const absl::Time start_ = absl::UnixEpoch();
};

TEST_F(BodyReceiptTest, LooksAgainWheneverTheTimeHasDoubledAndAtTheEnd) {
  BodyReceipt receipt = Begin();
  received_ = 64 * kKiB;  // with the first window, half a second
  for (const int due : {20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 10500}) {
    EXPECT_EQ(receipt.next_look() - start_, Milliseconds(due));
    const absl::Status status = receipt.Look(receipt.next_look());
    EXPECT_EQ(status.ok(), due < 10500) << status;
  }
}

TEST_F(BodyReceiptTest, ThePermitGrowsToWhatHasArrived) {
  BodyReceipt receipt = Begin();
  EXPECT_EQ(Held(), 64 * kKiB);
  ASSERT_TRUE(receipt.Look(start_ + Milliseconds(250)).ok());
  EXPECT_EQ(Held(), 64 * kKiB);
  received_ = 300 * kKiB;
  ASSERT_TRUE(receipt.Look(start_ + Milliseconds(500)).ok());
  EXPECT_EQ(Held(), 364 * kKiB);
  received_ = 5000 * kKiB;  // other calls of the connection
  ASSERT_TRUE(receipt.Look(start_ + Milliseconds(1000)).ok());
  EXPECT_EQ(Held(), 1024 * kKiB);
  EXPECT_EQ(receipt.Finish(400 * kKiB).amount(), 1024 * kKiB);
}

TEST_F(BodyReceiptTest, RefusesABodyThatThereIsNoRoomFor) {
  BodyReceipt receipt = Begin();
  Budget::Hold rest;
  ASSERT_EQ(admission_.memory().TryTake({"q", 1900 * kKiB}, rest), Budget::Answer::kTaken);
  received_ = 300 * kKiB;
  EXPECT_EQ(receipt.Look(start_ + Milliseconds(250)).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(BodyReceiptTest, GuessesWhereNothingIsKnown) {
  BodyReceipt receipt = Begin(false);
  ASSERT_TRUE(receipt.Look(start_ + Milliseconds(250)).ok());
  ASSERT_TRUE(receipt.Look(start_ + Milliseconds(10000)).ok());
  EXPECT_EQ(Held(), 64 * kKiB);
  ASSERT_TRUE(receipt.Look(start_ + Milliseconds(10500)).ok());
  EXPECT_EQ(Held(), 128 * kKiB);
  ASSERT_TRUE(receipt.Look(start_ + Milliseconds(12000)).ok());
  EXPECT_EQ(Held(), 512 * kKiB);
  const absl::Status status = receipt.Look(start_ + Milliseconds(14000));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 10s and a second for each 262144"));
}

}  // namespace body_receipt_test
}  // namespace attendant::server
