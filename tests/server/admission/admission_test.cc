#include "server/admission/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "server/admission/recent_size.h"
#include "server/metrics/refusal.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace admission_test {

TEST(AdmissionTest, RefusesWithTheReason) {
  Admission admission({.slots = {1}, .streams = {1}, .memory = {100}});
  Budget::Reservation slot, stream, memory, other;
  EXPECT_TRUE(admission.TakeSlot("a", slot).ok());
  EXPECT_TRUE(admission.TakeStream("a", stream).ok());
  EXPECT_TRUE(admission.Charge({"a", 80, HeldFor::kReceiving}, memory).ok());
  const absl::Status no_slot = admission.TakeSlot("b", other);
  EXPECT_EQ(no_slot.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(no_slot.message(), "all request slots are taken (1 of 1, --max-inflight); retry later");
  EXPECT_EQ(ReasonOf(no_slot), "slots");
  EXPECT_EQ(ReasonOf(admission.TakeStream("b", other)), "streams");
  const absl::Status no_memory = admission.Charge({"b", 21, HeldFor::kRequest}, other);
  EXPECT_EQ(no_memory.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(no_memory.message(),
            "the memory for requests is full (80 of 100 bytes, --memory-limit-bytes); this request "
            "with its response needs 21; retry later");
  EXPECT_EQ(ReasonOf(no_memory), "memory");
  EXPECT_TRUE(admission.Charge({"b", 15, HeldFor::kReceiving}, other).ok());
  EXPECT_EQ(admission.Charge({"b", 30, HeldFor::kRequest}, other).message(),
            "the memory for requests is full (80 of 100 bytes, --memory-limit-bytes); this request "
            "with its response needs 30; retry later");
  EXPECT_EQ(admission.ChargeReceived({"b", 30, HeldFor::kReceiving}, 0, other).message(),
            "the memory for requests is full (80 of 100 bytes, --memory-limit-bytes); the "
            "unfinished requests of this connection need 30; retry later");
  EXPECT_EQ(admission.ChargeReceived({"b", 101, HeldFor::kReceiving}, 0, other).message(),
            "the unfinished requests of this connection need 101 bytes; the server has 100 for all "
            "requests (--memory-limit-bytes)");
}

TEST(AdmissionTest, WhatCanNeverFitIsTheCallersMistake) {
  Admission admission({.memory = {100}});
  Budget::Reservation memory;
  for (const int64_t held : {0, 10}) {
    if (held > 0) {
      EXPECT_TRUE(admission.Charge({"a", held, HeldFor::kReceiving}, memory).ok());
    }
    const absl::Status status = admission.Charge({"a", 101, HeldFor::kRequest}, memory);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "the request would take 101 bytes with its response; the server has 100 for all "
              "requests (--memory-limit-bytes)");
    EXPECT_EQ(ReasonOf(status), "");
  }
}

TEST(AdmissionTest, NamesTheShareOfAPeer) {
  Admission admission({.slots = {4, 1}});
  std::vector<Budget::Reservation> slots(5);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admission.TakeSlot("a", slots[i]).ok());
  const absl::Status status = admission.TakeSlot("a", slots[3]);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the client already has its share of the server's slots");
  EXPECT_EQ(ReasonOf(status), "peer_share");
  EXPECT_TRUE(admission.TakeSlot("b", slots[3]).ok());
}

TEST(AdmissionTest, GivesNothingAfterClose) {
  Admission admission({.slots = {2}, .streams = {2}, .memory = {100}});
  Budget::Reservation slot, stream, memory, other;
  EXPECT_TRUE(admission.TakeSlot("a", slot).ok());
  EXPECT_TRUE(admission.TakeStream("a", stream).ok());
  EXPECT_FALSE(admission.closed());
  admission.Close();
  EXPECT_TRUE(admission.closed());
  const absl::Status status = admission.TakeSlot("a", other);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(status), "draining");
  EXPECT_EQ(ReasonOf(admission.TakeStream("a", other)), "draining");
  EXPECT_TRUE(admission.Charge({"a", 80, HeldFor::kRequest}, memory).ok());
  EXPECT_EQ(admission.AwaitIdle(absl::ZeroDuration()), 2);
  stream.Release();
  EXPECT_EQ(admission.AwaitIdle(absl::ZeroDuration()), 1);
  slot.Release();
  EXPECT_EQ(admission.AwaitIdle(absl::InfiniteDuration()), 0);
}

TEST(AdmissionTest, RefusesWhileTheProcessIsTooLarge) {
  FakeClock clock;
  int64_t resident = 96;
  int asked = 0;
  Admission admission(
      {.most_resident_bytes = 95}, [&] { return ++asked, resident; }, clock);
  Budget::Reservation slot, stream;
  const absl::Status status = admission.TakeSlot("a", slot);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the server is short of memory; retry later");
  EXPECT_EQ(ReasonOf(status), "memory");
  EXPECT_EQ(ReasonOf(admission.TakeStream("a", stream)), "memory");
  EXPECT_EQ(asked, 1);
  resident = 95;
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(admission.TakeSlot("a", slot).ok());
  EXPECT_EQ(asked, 2);
}

TEST(AdmissionTest, LetsCallersRetryWhenAPlaceMayBeFree) {
  Admission admission({});
  const absl::Duration none;
  EXPECT_EQ(admission.RetryAfter(none), absl::Milliseconds(100));
  admission.ReportAnswered(absl::Seconds(2));
  EXPECT_EQ(admission.RetryAfter(none), absl::Seconds(2));
  admission.ReportAnswered(absl::Seconds(18));
  EXPECT_EQ(admission.RetryAfter(none), absl::Seconds(3));
  for (int i = 0; i < 1000; ++i) admission.ReportAnswered(absl::Microseconds(1));
  EXPECT_EQ(admission.RetryAfter(none), absl::Milliseconds(10));
  for (int i = 0; i < 1000; ++i) admission.ReportAnswered(absl::Hours(1));
  EXPECT_EQ(admission.RetryAfter(none), absl::Seconds(10));
}

TEST(AdmissionTest, LetsCallersRetryWhenTheBacklogIsDone) {
  Admission admission({});
  admission.ReportAnswered(absl::Seconds(2));
  EXPECT_EQ(admission.RetryAfter(absl::Milliseconds(300)), absl::Milliseconds(300));
  EXPECT_EQ(admission.RetryAfter(absl::Nanoseconds(1)), absl::Milliseconds(10));
  EXPECT_EQ(admission.RetryAfter(absl::Minutes(1)), absl::Seconds(10));
}

TEST(RecentSizeTest, RisesAtOnceAndForgets) {
  RecentSize size;
  EXPECT_EQ(size.bytes(), 64 << 10);
  size.Report(int64_t{8} << 20);
  EXPECT_EQ(size.bytes(), 8 << 20);
  size.Report(0);
  EXPECT_EQ(size.bytes(), 7 << 20);
  for (int i = 0; i < 100; ++i) size.Report(0);
  EXPECT_EQ(size.bytes(), 64 << 10);
}

}  // namespace admission_test
}  // namespace attendant::server
