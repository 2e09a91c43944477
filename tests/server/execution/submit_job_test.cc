// Tests of the step before the queue, with a cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/execution/cached_vectors.h"
#include "server/execution/compute_job.h"
#include "tests/server/support/service_parts.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace submit_job_test {

constexpr int64_t kE = 32;

class SubmitJobTest : public ::testing::Test {
 protected:
  SubmitJobTest() {
    context_.cache = &cache_;
    TakeUp(Request({1}));
    EXPECT_EQ(Submit(Request({1})), absl::OkStatus());
    EXPECT_TRUE(ended_);
  }

  // The request for a sequence of each of these ids.
  ComputeRequest Request(const std::vector<int64_t>& ids) {
    v1::EncodeRequest message;
    message.set_model("tiny");
    message.set_omit_hidden_states(true);
    message.set_return_pooled(true);
    *message.mutable_token_ids() = IntegerTensor({static_cast<int64_t>(ids.size()), 1}, ids);
    const grpc::Slice slice(message.SerializeAsString());
    auto prepared = PrepareNow(PrepareEncode(grpc::ByteBuffer(&slice, 1), context_));
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    prepared->request.client = "a";
    return std::move(prepared->request);
  }

  // Puts vectors of the request's sequences into the cache.
  void TakeUp(const ComputeRequest& request) {
    const std::shared_ptr<CachedVectors> vectors = CachedVectors::Find(request, cache_);
    ASSERT_NE(vectors, nullptr);
    Response response;
    response.outputs = request.output_tensors();
    ResponseTensor& pooled = *response.Find(OutputKind::kPooled);
    ASSERT_EQ(pooled.Allocate(), absl::OkStatus());
    pooled.WriteZeros(0, pooled.elements());
    EXPECT_TRUE(vectors->Complete(std::move(response)).ok());
  }

  absl::Status Submit(ComputeRequest request, Held held = {}) {
    ended_ = false;
    JobTerms terms;
    terms.peer = "a";
    terms.held = std::move(held);
    return SubmitJob(context_, std::move(request), std::move(terms), [this](ComputeJob::End end) {
      ended_ = true;
      end_ = std::move(end);
    });
  }

  ServiceParts parts_{absl::Milliseconds(1)};
  ResultCache cache_{int64_t{1} << 20};
  ServiceContext context_ = parts_.Context({1, 1});
  bool ended_ = false;
  ComputeJob::End end_{absl::UnknownError("none")};
};

TEST_F(SubmitJobTest, EndsAtOnceWithTheMemoryThatItHolds) {
  Budget budget({1000});
  Held held;
  ASSERT_EQ(budget.TryTake({"a", 1000, HeldFor::kRequest}, held.memory), Budget::Answer::kTaken);
  EXPECT_EQ(Submit(Request({1, 1}), std::move(held)), absl::OkStatus());
  ASSERT_TRUE(ended_);
  ASSERT_TRUE(end_.response.ok()) << end_.response.status();
  EXPECT_EQ(end_.response->execution.cached_sequences(), 2);
  EXPECT_EQ(end_.held.memory.amount(), 1000);
  EXPECT_EQ(parts_.queue.counts().jobs, 0);
}

TEST_F(SubmitJobTest, AnswersAlsoWhenTheQueueIsClosed) {
  parts_.queue.Close();
  EXPECT_EQ(Submit(Request({1})), absl::OkStatus());
  EXPECT_TRUE(ended_);
  EXPECT_EQ(Submit(Request({2})).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(ended_);
}

TEST_F(SubmitJobTest, QueuesWhatIsMissing) {
  EXPECT_EQ(Submit(Request({2, 1, 3})), absl::OkStatus());
  EXPECT_FALSE(ended_);
  EXPECT_EQ(parts_.queue.counts().tokens, 2);
  parts_.queue.FailAll(absl::UnavailableError("it is a test"));
  ASSERT_TRUE(ended_);
  EXPECT_EQ(end_.response.status(), absl::UnavailableError("it is a test"));
}

TEST_F(SubmitJobTest, TakesMemoryForBothResponses) {
  const int64_t one = *PredictResponseBytes(Request({2}), int64_t{1} << 20);
  for (const int64_t room : {one - 1, one}) {
    Budget budget({1000 + room});
    Held held;
    ASSERT_EQ(budget.TryTake({"a", 1000, HeldFor::kRequest}, held.memory), Budget::Answer::kTaken);
    EXPECT_EQ(Submit(Request({2, 1}), std::move(held)), absl::OkStatus());
    EXPECT_EQ(parts_.queue.counts().tokens, room < one ? 2 : 1);
    EXPECT_EQ(budget.counts().all(), 1000 + (room < one ? 0 : one));
    parts_.queue.FailAll(absl::UnavailableError("it is a test"));
    EXPECT_TRUE(ended_);
    end_.held = {};
  }
}

TEST_F(SubmitJobTest, LooksForNothingOfNobody) {
  ComputeRequest request = Request({1});
  request.client.clear();
  EXPECT_EQ(CachedVectors::Find(request, cache_), nullptr);
  EXPECT_EQ(Submit(std::move(request)), absl::OkStatus());
  EXPECT_EQ(parts_.queue.counts().tokens, 1);
  parts_.queue.FailAll(absl::UnavailableError("it is a test"));
}

}  // namespace submit_job_test
}  // namespace attendant::server
