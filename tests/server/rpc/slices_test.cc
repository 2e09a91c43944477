// Tests of requests that are computed in several batches, by whole sequences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/server/support/pending_attend.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace slices_test {

using ::testing::HasSubstr;

constexpr int64_t kSequences = 5, kLength = 7, kWidth = 32;

// Each sequence is a slice and fills a batch.
TestServerOptions InSlices() {
  TestServerOptions options;
  options.limits.max_batch_seconds = absl::Nanoseconds(1);
  return options;
}

v1::EncodeRequest HiddenStates() {
  v1::EncodeRequest request;
  request.set_model("tiny");
  *request.mutable_hidden_states() =
      FloatTensor({kSequences, kLength, kWidth}, SomeValues(kSequences * kLength * kWidth, 3));
  return request;
}

// Padding at either end, a hole, a sequence without tokens and one without padding.
void Mask(v1::EncodeRequest& request) {
  std::vector<int64_t> keeps(kSequences * kLength, 1);
  for (const int64_t padding : {0, 1, 9, 13, 20}) keeps[padding] = 0;
  for (int64_t s = 0; s < kLength; ++s) keeps[3 * kLength + s] = 0;
  *request.mutable_attention_mask() = IntegerTensor({kSequences, kLength}, keeps);
}

class SlicesTest : public ::testing::Test {
 protected:
  // Expects the same bits from both servers, and returns the batches that the second one needed.
  int ExpectSame(const v1::EncodeRequest& request) {
    return ExpectSame<v1::EncodeResponse>(request, &TestServer::Encode);
  }
  int ExpectSame(const v1::AttendRequest& request) {
    return ExpectSame<v1::AttendResponse>(request, &TestServer::Attend);
  }

  template <typename Response, typename Request>
  int ExpectSame(const Request& request,
                 grpc::Status (TestServer::*call)(const Request&, Response*)) {
    Response expected, response;
    const grpc::Status whole = (whole_.*call)(request, &expected);
    EXPECT_TRUE(whole.ok()) << whole.error_message();
    const int before = sliced_.gate().passed();
    const grpc::Status status = (sliced_.*call)(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.execution().tokens(), expected.execution().tokens());
    EXPECT_GT(response.execution().batch_requests(), 0);
    response.clear_execution();
    expected.clear_execution();
    EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
    return sliced_.gate().passed() - before;
  }

  TestServer whole_, sliced_{InSlices()};
};

TEST_F(SlicesTest, AnswersHaveTheSameBits) {
  v1::EncodeRequest request = HiddenStates();
  EXPECT_EQ(ExpectSame(request), kSequences);
  Mask(request);
  EXPECT_EQ(ExpectSame(request), kSequences);
  request.set_return_pooled(true);
  request.set_pooling(v1::MEAN);
  EXPECT_EQ(ExpectSame(request), kSequences);
  request.mutable_head_gates()->Resize(8, 0.5f);
  EXPECT_EQ(ExpectSame(request), kSequences);
}

TEST_F(SlicesTest, TokenIdsHaveTheSameBits) {
  v1::EncodeRequest request;
  request.set_model("tiny");
  std::vector<int64_t> ids(kSequences * kLength);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * 37 % 100);
  *request.mutable_token_ids() = IntegerTensor({kSequences, kLength}, ids);
  Mask(request);
  request.set_return_pooled(true);
  request.set_pooling(v1::MODEL_POOLING);
  EXPECT_EQ(ExpectSame(request), kSequences);
}

TEST_F(SlicesTest, OtherLayoutsHaveTheSameBits) {
  v1::EncodeRequest packed;
  packed.set_model("tiny");
  *packed.mutable_hidden_states() = FloatTensor({12, kWidth}, SomeValues(12 * kWidth, 4));
  for (const int length : {3, 1, 8}) packed.add_lengths(length);
  EXPECT_EQ(ExpectSame(packed), 3);
  v1::EncodeRequest sequence_first = HiddenStates();
  *sequence_first.mutable_hidden_states() =
      FloatTensor({kLength, kSequences, kWidth}, SomeValues(kSequences * kLength * kWidth, 3));
  sequence_first.set_layout(v1::SEQUENCE_FIRST);
  for (const int length : {7, 2, 5, 1, 6}) sequence_first.add_lengths(length);
  EXPECT_EQ(ExpectSame(sequence_first), kSequences);
}

TEST_F(SlicesTest, IntermediateLayersHaveTheSameBits) {
  v1::EncodeRequest request = HiddenStates();
  request.add_intermediate_layers(1);
  request.add_intermediate_layers(0);
  EXPECT_EQ(ExpectSame(request), kSequences);
  Mask(request);
  EXPECT_EQ(ExpectSame(request), kSequences);
}

TEST_F(SlicesTest, SelectedTokensHaveTheSameBits) {
  v1::EncodeRequest request = HiddenStates();
  Mask(request);
  // Padding, a token twice, and sequences in another order.
  for (const int row : {34, 0, 2, 2, 21, 8, 33}) request.add_query_rows(row);
  EXPECT_EQ(ExpectSame(request), kSequences);
  request.set_return_pooled(true);
  request.set_pooling(v1::FIRST_TOKEN);
  EXPECT_EQ(ExpectSame(request), kSequences);
}

TEST_F(SlicesTest, FeaturesHaveTheSameBits) {
  v1::EncodeRequest request;
  request.set_model("patches");
  *request.mutable_features() = FloatTensor({4, 3, kWidth}, SomeValues(12 * kWidth, 8));
  EXPECT_EQ(ExpectSame(request), 4);
  *request.mutable_attention_mask() = IntegerTensor({4, 3}, {1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0});
  EXPECT_EQ(ExpectSame(request), 4);
}

TEST_F(SlicesTest, BiasesHaveTheSameBits) {
  v1::EncodeRequest request = HiddenStates();
  *request.mutable_attention_bias() =
      FloatTensor({kSequences, 1, kLength, kLength}, SomeValues(kSequences * kLength * kLength, 9));
  EXPECT_EQ(ExpectSame(request), kSequences);
  Mask(request);
  EXPECT_EQ(ExpectSame(request), kSequences);
}

TEST_F(SlicesTest, ABiasThatAllSequencesShareIsConvertedOnce) {
  v1::EncodeRequest request = HiddenStates();
  *request.mutable_attention_bias() =
      FloatTensor({1, 1, kLength, kLength}, SomeValues(kLength * kLength, 9));
  EXPECT_EQ(ExpectSame(request), 1);
}

TEST_F(SlicesTest, ARefusedBiasIsNamedByItsPlaceInTheWhole) {
  v1::EncodeRequest request = HiddenStates();
  std::vector<float> bias(kSequences * kLength * kLength);
  bias[(3 * kLength + 2) * kLength + 1] = std::nanf("");
  *request.mutable_attention_bias() = FloatTensor({kSequences, 1, kLength, kLength}, bias);
  v1::EncodeResponse response;
  const grpc::Status status = sliced_.Encode(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("attention_bias[3, 0, 2, 1]"));
}

v1::AttendRequest Attend() {
  v1::AttendRequest request = AttendOf("tiny", HiddenStates().hidden_states());
  request.set_layer(1);
  request.set_stage(v1::PROJECTED);
  return request;
}

TEST_F(SlicesTest, ProbabilitiesHaveTheSameBits) {
  v1::EncodeRequest request = HiddenStates();
  Mask(request);
  request.add_attention_layers(1);
  request.add_attention_layers(0);
  for (const auto form : {v1::PER_HEAD, v1::HEAD_MEAN, v1::TOP_KEYS}) {
    request.set_attention_form(form);
    if (form == v1::TOP_KEYS) request.set_attention_top_k(3);
    EXPECT_EQ(ExpectSame(request), kSequences);
  }
  v1::AttendRequest attend = Attend();
  *attend.mutable_attention_mask() = request.attention_mask();
  attend.set_return_attention_probabilities(true);
  attend.set_return_weighted_values(true);
  EXPECT_EQ(ExpectSame(attend), kSequences);
}

// A memory for each sequence.
void SetMemory(v1::Memory& memory) {
  *memory.mutable_hidden_states() =
      FloatTensor({kSequences, 4, kWidth}, SomeValues(kSequences * 4 * kWidth, 10));
  for (const int length : {4, 1, 0, 3, 2}) memory.add_lengths(length);
}

TEST_F(SlicesTest, CrossAttentionHasTheSameBits) {
  v1::AttendRequest request = Attend();
  SetMemory(*request.mutable_memory());
  request.set_return_attention_probabilities(true);
  EXPECT_EQ(ExpectSame(request), kSequences);
  *request.mutable_memory()->mutable_values() =
      FloatTensor({kSequences, 4, kWidth}, SomeValues(kSequences * 4 * kWidth, 11));
  EXPECT_EQ(ExpectSame(request), kSequences);
}

TEST_F(SlicesTest, AMemoryThatAllSequencesShareIsProjectedOnce) {
  v1::AttendRequest request = Attend();
  *request.mutable_memory()->mutable_hidden_states() =
      FloatTensor({1, 4, kWidth}, SomeValues(4 * kWidth, 10));
  EXPECT_EQ(ExpectSame(request), 1);
}

TEST_F(SlicesTest, RegisteredKeysHaveTheSameBits) {
  v1::PutMemoryRequest put;
  put.set_model("tiny");
  put.set_layer(1);
  for (const bool shared : {false, true}) {
    SetMemory(*put.mutable_memory());
    if (shared) {
      put.mutable_memory()->clear_lengths();
      *put.mutable_memory()->mutable_hidden_states() =
          FloatTensor({1, 4, kWidth}, SomeValues(4 * kWidth, 10));
    }
    v1::AttendRequest request = Attend();
    request.set_return_attention_probabilities(true);
    *request.mutable_memory() = put.memory();
    v1::AttendResponse expected, response;
    ASSERT_TRUE(whole_.Attend(request, &expected).ok());
    grpc::ClientContext context;
    v1::PutMemoryResponse registered;
    ASSERT_TRUE(sliced_.stub().PutMemory(&context, put, &registered).ok());
    request.clear_memory();
    request.set_memory_handle(registered.handle());
    const int before = sliced_.gate().passed();
    ASSERT_TRUE(sliced_.Attend(request, &response).ok());
    EXPECT_EQ(sliced_.gate().passed() - before, kSequences);
    EXPECT_EQ(response.output().data(), expected.output().data());
    EXPECT_EQ(response.attention_probabilities().data(), expected.attention_probabilities().data());
  }
}

v1::AttendRequest Bulk(const std::vector<float>& values) {
  return AttendOf("tiny", FloatTensor({kSequences, kLength, kWidth}, values));
}

TEST(SlicesOfFailedRequestsTest, AFailedSliceFailsTheRequestOnceAndDropsTheRest) {
  TestServerOptions options = InSlices();
  options.limits.nonfinite = NonfinitePolicy::kReject;
  TestServer server(options);
  std::vector<float> values = SomeValues(kSequences * kLength * kWidth, 5);
  values[(kLength + 2) * kWidth + 4] = std::nanf("");
  v1::AttendResponse response;
  const grpc::Status status = server.Attend(Bulk(values), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("hidden_states[1, 2, 4]"));
  EXPECT_TRUE(server.Attend(Bulk(SomeValues(kSequences * kLength * kWidth, 5)), &response).ok());
  EXPECT_EQ(server.queue().counts().jobs, 0);
  EXPECT_EQ(server.gate().passed(), 2 + kSequences);
}

TEST(SlicesOfFailedRequestsTest, ACancelledRequestDropsItsRemainingSlices) {
  TestServerOptions options = InSlices();
  options.gate_closed = true;
  TestServer server(options);
  PendingAttend bulk(server.stub(), Bulk(SomeValues(kSequences * kLength * kWidth, 5)));
  server.gate().AwaitBlocked();
  EXPECT_EQ(server.queue().counts().jobs, 1);
  bulk.Cancel();
  server.AwaitQueued(0);
  server.gate().Open();
  EXPECT_EQ(bulk.Wait().error_code(), grpc::StatusCode::CANCELLED);
  // The call ends before its slice, behind which the only instance takes the next request.
  const v1::AttendRequest next =
      AttendOf("tiny", FloatTensor({1, 1, kWidth}, SomeValues(kWidth, 6)));
  v1::AttendResponse response;
  ASSERT_TRUE(server.Attend(next, &response).ok());
  EXPECT_EQ(server.gate().passed(), 2);
}

TEST(SlicesOfFailedRequestsTest, ASmallRequestWaitsForOneSlice) {
  TestServerOptions options = InSlices();
  options.gate_closed = true;
  TestServer server(options);
  PendingAttend bulk(server.stub(), Bulk(SomeValues(kSequences * kLength * kWidth, 5)));
  server.gate().AwaitBlocked();
  PendingAttend quick(server.stub(),
                      AttendOf("tiny", FloatTensor({1, 1, kWidth}, SomeValues(kWidth, 6))));
  server.AwaitQueued(2);
  server.gate().Open();
  ASSERT_TRUE(quick.Wait().ok());
  ASSERT_TRUE(bulk.Wait().ok());
  // It was taken second, so that it waited less than the rest of the others' slices were computed.
  EXPECT_EQ(server.gate().passed(), 1 + kSequences);
  EXPECT_EQ(quick.response().execution().batch_requests(), 1);
}

}  // namespace slices_test
}  // namespace attendant::server
