#include "server/cross_kv/cross_kv_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/metrics/refusal.h"
#include "tests/server/support/test_server.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace cross_kv_store_test {

// In "tiny", where E = 32, each row takes 256 bytes of keys and values, and 4 of position.
CrossKvOrigin Rows(int32_t rows,
                   std::shared_ptr<const ServedModel> model = TestModels().at("tiny")) {
  TokenLayout layout{.sequences = 1, .padded_length = rows, .rows = rows};
  for (int32_t i = 0; i < rows; ++i) layout.positions.push_back(i);
  layout.cu_seqlens.push_back(rows);
  layout.runs.push_back({0, rows});
  return {std::move(model), 1, layout};
}

constexpr int64_t kBytesOfOneRow = 512 + 256 + 4 + 8 + 16;

class CrossKvStoreTest : public ::testing::Test {
 protected:
  CrossKvStore::Registration Put(int32_t rows, absl::Duration age) {
    auto memory = store_.Reserve(Rows(rows));
    EXPECT_TRUE(memory.ok()) << memory.status();
    return store_.Add(*std::move(memory), age);
  }

  FakeClock clock_;
  CrossKvStore store_{clock_, 2000, absl::Seconds(60)};
};

absl::Status Gone() {
  return absl::NotFoundError(
      "memory_handle: not found (expired, dropped or never registered); call PutMemory again");
}

TEST_F(CrossKvStoreTest, KeepsWhatItWasGiven) {
  auto memory = store_.Reserve(Rows(2));
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ((*memory)->keys().rows, 2);
  EXPECT_EQ((*memory)->values().cols, 32);
  (*memory)->keys().row(1)[31] = 7;
  (*memory)->values().row(1)[31] = 8;
  const CrossKvStore::Registration registration = store_.Add(*std::move(memory), absl::Seconds(5));
  EXPECT_EQ(registration.bytes, kBytesOfOneRow + 260);
  EXPECT_EQ(registration.expires, clock_.Now() + absl::Seconds(5));
  const auto found = store_.Find(registration.handle);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->keys().row(1)[31], 7);
  EXPECT_EQ((*found)->values().row(1)[31], 8);
  EXPECT_EQ((*found)->origin().layer, 1);
}

TEST_F(CrossKvStoreTest, ExpiresAtItsTime) {
  const CrossKvStore::Registration late = Put(1, absl::Seconds(9)),
                                   early = Put(1, absl::Seconds(5));
  clock_.Advance(absl::Seconds(5) - absl::Nanoseconds(1));
  EXPECT_TRUE(store_.Find(early.handle).ok());
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_EQ(store_.Find(early.handle).status(), Gone());
  EXPECT_TRUE(store_.Find(late.handle).ok());
  EXPECT_EQ(store_.counts().registered, 1);
  EXPECT_EQ(store_.counts().bytes, kBytesOfOneRow);
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(store_.counts().registered, 0);
  EXPECT_EQ(store_.counts().bytes, 0);
}

TEST_F(CrossKvStoreTest, DropsOnce) {
  const std::string handle = Put(1, absl::Seconds(5)).handle;
  EXPECT_EQ(store_.Drop(handle).value(), kBytesOfOneRow);
  EXPECT_EQ(store_.Drop(handle).status(), Gone());
  EXPECT_EQ(store_.Find(handle).status(), Gone());
  EXPECT_EQ(store_.Find("").status(), Gone());
  EXPECT_EQ(store_.counts().bytes, 0);
  clock_.Advance(absl::Seconds(9));  // beyond the expiry that it had
  EXPECT_EQ(store_.counts().registered, 0);
}

TEST_F(CrossKvStoreTest, ForgetsWhatRetiredModelsHaveMade) {
  auto old = std::make_shared<ServedModel>("old", TestModels().at("tiny")->encoder);
  const CrossKvStore::Registration kept = Put(0, absl::Seconds(9));
  const std::string handle = store_.Add(*store_.Reserve(Rows(1, old)), absl::Seconds(5)).handle;
  auto late = store_.Reserve(Rows(0, old));
  store_.EvictRetired();
  EXPECT_TRUE(store_.Find(handle).ok());
  old->retired->store(true);
  store_.EvictRetired();
  const absl::Status retired = absl::FailedPreconditionError(
      "memory_handle: the version of model \"old\" that made it is no longer served");
  EXPECT_EQ(store_.Find(handle).status(), retired);
  EXPECT_EQ(store_.Drop(handle).status(), retired);
  EXPECT_TRUE(store_.Find(kept.handle).ok());
  EXPECT_EQ(store_.counts().registered, 1);
  // One that was being made meanwhile.
  EXPECT_EQ(store_.Find(store_.Add(*std::move(late), absl::Seconds(5)).handle).status(), retired);
  EXPECT_EQ(store_.counts().bytes, kept.bytes);
  EXPECT_EQ(old.use_count(), 1);
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(store_.Find(handle).status(), Gone());
}

TEST_F(CrossKvStoreTest, RemembersABoundedNumberOfHandlesOfRetiredModels) {
  auto old = std::make_shared<ServedModel>("old", TestModels().at("tiny")->encoder);
  old->retired->store(true);
  std::vector<std::string> handles;
  for (int i = 0; i < 4097; ++i) {
    handles.push_back(store_.Add(*store_.Reserve(Rows(0, old)), absl::Seconds(5)).handle);
  }
  EXPECT_EQ(store_.Find(handles.front()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_.Find(handles.back()).status(), Gone());
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(store_.Find(handles.front()).status(), Gone());
}

TEST_F(CrossKvStoreTest, RefusesWhatDoesNotFit) {
  Put(1, absl::Seconds(5));
  auto being_made = store_.Reserve(Rows(1));
  ASSERT_TRUE(being_made.ok());
  EXPECT_EQ(store_.counts().bytes, 2 * kBytesOfOneRow);
  const absl::Status full = store_.Reserve(Rows(1)).status();
  EXPECT_EQ(ReasonOf(full), "registered");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "the space for registered memories and sequence states is full (1592 of 2000 bytes, "
            "--max-registered-bytes); this memory needs 796; retry later");
  being_made->reset();
  EXPECT_TRUE(store_.Reserve(Rows(1)).ok());
  EXPECT_EQ(store_.counts().bytes, kBytesOfOneRow);
  // Expired memories make room.
  EXPECT_FALSE(store_.Reserve(Rows(3)).ok());
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(store_.Reserve(Rows(3)).ok());
}

TEST_F(CrossKvStoreTest, HoldsRoomForSequencesAndMemories) {
  Put(1, absl::Seconds(5));
  auto first = store_.Hold(700);
  auto second = store_.Hold(400);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(store_.counts().sequences, 2);
  EXPECT_EQ(store_.counts().sequence_bytes, 1100);
  EXPECT_EQ(store_.counts().bytes, kBytesOfOneRow);
  EXPECT_EQ(store_.Hold(2001).status(),
            absl::InvalidArgumentError("this sequence state needs 2001 bytes; the server has 2000 "
                                       "for all of them (--max-registered-bytes)"));
  const absl::Status full = store_.Hold(105).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "the space for registered memories and sequence states is full (1896 of 2000 bytes, "
            "--max-registered-bytes); this sequence state needs 105; retry later");
  EXPECT_FALSE(store_.Reserve(Rows(1)).ok());
  first->reset();
  EXPECT_TRUE(store_.Hold(105).ok());
  EXPECT_EQ(store_.counts().sequences, 1);
}

TEST_F(CrossKvStoreTest, WhatIsInUseStaysAndCounts) {
  const std::string handle = Put(1, absl::Seconds(5)).handle;
  auto in_use = store_.Find(handle);
  ASSERT_TRUE(in_use.ok());
  EXPECT_TRUE(store_.Drop(handle).ok());
  EXPECT_EQ(store_.counts().registered, 0);
  EXPECT_EQ(store_.counts().bytes, kBytesOfOneRow);
  EXPECT_EQ((*in_use)->keys().rows, 1);
  in_use->reset();
  EXPECT_EQ(store_.counts().bytes, 0);
}

TEST_F(CrossKvStoreTest, HandlesCannotBeGuessed) {
  std::set<std::string> handles;
  for (int i = 0; i < 100; ++i) {
    const std::string handle = Put(0, absl::Seconds(5)).handle;
    EXPECT_THAT(handle, ::testing::MatchesRegex("[0-9a-f]+"));
    EXPECT_EQ(handle.size(), 32u);
    EXPECT_TRUE(handles.insert(handle).second);
    EXPECT_TRUE(store_.Drop(handle).ok());
  }
}

TEST(CrossKvStoreLifeTest, WhatIsKeptIsOfTheServersMemory) {
  FakeClock clock;
  Budget memory({1000});
  CrossKvStore store(clock, 2000, absl::Minutes(10), &memory);
  auto kept = store.Reserve(Rows(1));
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(memory.counts().held_for(HeldFor::kRegistered), kBytesOfOneRow);
  const absl::Status full = store.Hold(300).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      full.message(),
      "the memory for requests is full (796 of 1000 bytes, --memory-limit-bytes); this sequence "
      "state needs 300; retry later");
  EXPECT_EQ(ReasonOf(full), "memory");
  EXPECT_EQ(store.counts().sequences, 0);
  kept->reset();
  EXPECT_EQ(memory.counts().all(), 0);
  EXPECT_TRUE(store.Hold(300).ok());
}

TEST(CrossKvStoreLifeTest, MemoriesMayOutliveIt) {
  FakeClock clock;
  std::shared_ptr<const RegisteredCrossKv> memory;
  {
    CrossKvStore store(clock, 2000, absl::Minutes(10));
    memory = *store.Reserve(Rows(1));
  }
  EXPECT_EQ(memory->bytes(), kBytesOfOneRow);
}

}  // namespace cross_kv_store_test
}  // namespace attendant::server
