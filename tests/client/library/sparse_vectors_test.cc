// Tests of the sparse vectors of an answer, sound and unsound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "client/proto_conversion.h"

namespace attendant::client {
namespace sparse_vectors_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void Set(v1::Tensor& tensor, const Tensor& values) {
  tensor.set_dtype(static_cast<v1::DataType>(values.dtype));
  tensor.mutable_shape()->Assign(values.shape.begin(), values.shape.end());
  tensor.set_data(values.data);
}

Tensor Int32Tensor(const std::vector<int32_t>& values) {
  return {DataType::kInt32,
          {static_cast<int64_t>(values.size())},
          std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size())};
}

// Of three sequences, the second one without weights.
v1::EncodeResponse Sound() {
  v1::EncodeResponse response;
  v1::SparseVectors& sparse = *response.mutable_sparse();
  for (const int64_t count : {2, 0, 1}) sparse.add_counts(count);
  Set(*sparse.mutable_indices(), Int32Tensor({0, 9, 4}));
  Set(*sparse.mutable_weights(), FloatTensor({3}, {0.5f, 2.0f, 1.0f}));
  return response;
}

TEST(SparseVectorsTest, AreTaken) {
  const absl::StatusOr<EncodeResult> result = FromProto(Sound());
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->sparse.has_value());
  EXPECT_THAT(result->sparse->counts, ElementsAre(2, 0, 1));
  EXPECT_THAT(*ToInt64s(result->sparse->indices), ElementsAre(0, 9, 4));
  EXPECT_THAT(*ToFloats(result->sparse->weights), ElementsAre(0.5f, 2.0f, 1.0f));
}

TEST(SparseVectorsTest, AreAbsentUnlessAnswered) {
  EXPECT_FALSE(FromProto(v1::EncodeResponse())->sparse.has_value());
}

TEST(SparseVectorsTest, MayAllBeZeros) {
  v1::EncodeResponse response;
  response.mutable_sparse()->add_counts(0);
  Set(*response.mutable_sparse()->mutable_indices(), Int32Tensor({}));
  Set(*response.mutable_sparse()->mutable_weights(), FloatTensor({0}, {}));
  const absl::StatusOr<EncodeResult> result = FromProto(response);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->sparse->indices.data, IsEmpty());
}

TEST(SparseVectorsTest, AreInternalIfUnsound) {
  const std::pair<std::function<void(v1::SparseVectors&)>, std::string> cases[] = {
      {[](auto& s) { s.set_counts(0, -2); }, "counts that are negative or overflow"},
      {[](auto& s) { s.set_counts(0, INT64_MAX); }, "counts that are negative or overflow"},
      {[](auto& s) { s.set_counts(0, 3); },
       "expected int32 indices and float weights, as many as the counts sum up to: 4"},
      {[](auto& s) { s.clear_counts(); }, "the counts sum up to: 0"},
      {[](auto& s) { s.clear_indices(); }, "invalid sparse.indices"},
      {[](auto& s) { s.mutable_indices()->mutable_data()->pop_back(); }, "invalid sparse.indices"},
      {[](auto& s) { s.mutable_weights()->set_data(""); }, "invalid sparse.weights"},
      {[](auto& s) {
         Set(*s.mutable_indices(), Int64Tensor({3}, {0, 9, 4}));
       },
       "sum up to: 3"},
      {[](auto& s) {
         Set(*s.mutable_weights(), Int32Tensor({1, 1, 1}));
       },
       "sum up to: 3"},
      {[](auto& s) {
         Set(*s.mutable_weights(), FloatTensor({3, 1}, {1, 1, 1}));
       },
       "sum up to: 3"},
      {[](auto& s) {
         Set(*s.mutable_indices(), Int32Tensor({9, 9, 4}));
       },
       "expected non-negative, ascending indices in each vector; got 9 after 9"},
      {[](auto& s) {
         Set(*s.mutable_indices(), Int32Tensor({0, 9, -4}));
       },
       "got -4 after -1"},
  };
  for (const auto& [spoil, message] : cases) {
    v1::EncodeResponse response = Sound();
    spoil(*response.mutable_sparse());
    const absl::Status status = FromProto(response).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the server's response has an invalid sparse"));
  }
}

}  // namespace sparse_vectors_test
}  // namespace attendant::client
