// Tests of the server with the test vectors of tests/support/test_vectors.h, over a socket.
#include <gtest/gtest.h>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/test_vectors.h"

namespace attendant::server {
namespace vectors_test {

using attendant::test_support::AllTestVectors;
using attendant::test_support::kTestVectorTolerance;
using attendant::test_support::MemoryWeights;
using attendant::test_support::TestVector;

ServedModels ModelOf(const TestVector& vector) {
  MemoryWeights weights(vector.weights);
  auto encoder = Encoder::Load(vector.description, weights, [](int64_t, int64_t) {});
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  return {{"v", std::make_shared<ServedModel>("v", *encoder)}};
}

// Fills the fields that both requests have.
template <typename Request>
Request Fill(const TestVector& vector) {
  const int64_t b = vector.batch;
  const int64_t s = vector.length;
  Request request;
  *request.mutable_hidden_states() =
      FloatTensor({b, s, vector.description.layer.hidden_size}, vector.hidden_states);
  if (!vector.attention_mask.empty()) {
    *request.mutable_attention_mask() = IntegerTensor(
        {b, s}, {vector.attention_mask.begin(), vector.attention_mask.end()}, v1::INT32);
  }
  if (!vector.attention_bias.empty()) {
    *request.mutable_attention_bias() = FloatTensor({1, 1, s, s}, vector.attention_bias);
  }
  return request;
}

v1::AttendStage WireStage(AttendStage stage) {
  switch (stage) {
    case AttendStage::kContext:
      return v1::CONTEXT;
    case AttendStage::kProjected:
      return v1::PROJECTED;
    case AttendStage::kBlock:
      return v1::BLOCK;
  }
  return v1::CONTEXT;
}

v1::Tensor Answer(TestServer& server, const TestVector& vector) {
  if (!vector.stage) {
    v1::EncodeResponse response;
    const grpc::Status status = server.Encode(Fill<v1::EncodeRequest>(vector), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.hidden_states();
  }
  v1::AttendRequest request = Fill<v1::AttendRequest>(vector);
  request.set_stage(WireStage(*vector.stage));
  v1::AttendResponse response;
  const grpc::Status status = server.Attend(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.output();
}

TEST(VectorsTest, TheSocketChangesNothing) {
  for (const TestVector& vector : AllTestVectors()) {
    SCOPED_TRACE(vector.name);
    TestServerOptions options;
    options.models = ModelOf(vector);
    TestServer server(options);
    const v1::Tensor answer = Answer(server, vector);
    const std::vector<float> output = ToFloats(answer);
    const int64_t width = answer.shape(2);
    ASSERT_EQ(static_cast<int64_t>(output.size()), vector.batch * vector.length * width);
    for (size_t row = 0; row < vector.first_rows.size(); ++row) {
      for (int64_t column = 0; column < width; ++column) {
        EXPECT_NEAR(output[row * width + column], vector.first_rows[row][column],
                    kTestVectorTolerance);
      }
    }
    double sum = 0;
    double squares = 0;
    for (float value : output) {
      sum += value;
      squares += double{value} * value;
    }
    const double slack = kTestVectorTolerance * static_cast<double>(output.size());
    EXPECT_NEAR(sum, vector.sum.value_or(sum), slack);
    EXPECT_NEAR(squares, vector.sum_of_squares.value_or(squares), 10 * slack);
  }
}

}  // namespace vectors_test
}  // namespace attendant::server
