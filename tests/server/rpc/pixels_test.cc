// Tests of models that take the pixels of images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/server/inference/infer_requests.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace pixels_test {

using ::testing::HasSubstr;

constexpr int64_t kSize = 5, kPatch = 2, kGrid = 2, kWidth = 12;  // the last line is of no patch

TestServerOptions Serving() {
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.embeddings.reset();
  model.patch_embedding = {.feature_width = kWidth,
                           .has_class = true,
                           .positions = kGrid * kGrid + 1,
                           .needs_every = true,
                           .image_size = kSize,
                           .patch_size = kPatch};
  TestServerOptions options;
  options.models = ModelOf("images", model);
  return options;
}

// The pixels of each patch of [images, 3, kSize, kSize]: by channel, line and column.
std::vector<float> PatchesOf(const std::vector<float>& pixels, int64_t images) {
  std::vector<float> rows;
  for (int64_t place = 0; place < images * kGrid * kGrid; ++place) {
    const int64_t image = place / (kGrid * kGrid);
    const int64_t top = place / kGrid % kGrid * kPatch, left = place % kGrid * kPatch;
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t y = 0; y < kPatch; ++y) {
        for (int64_t x = 0; x < kPatch; ++x) {
          rows.push_back(pixels[((image * 3 + channel) * kSize + top + y) * kSize + left + x]);
        }
      }
    }
  }
  return rows;
}

class PixelsTest : public ::testing::Test {
 protected:
  v1::EncodeResponse Call(const v1::Tensor& features) {
    v1::EncodeResponse response;
    const grpc::Status status = Send(features, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  grpc::Status Send(const v1::Tensor& features, v1::EncodeResponse* response) {
    request_.set_model("images");
    *request_.mutable_features() = features;
    return server_.Encode(request_, response);
  }
  std::string Refusal(const v1::Tensor& features) {
    v1::EncodeResponse response;
    const grpc::Status status = Send(features, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }

  TestServer server_{Serving()};
  v1::EncodeRequest request_;
  const std::vector<float> pixels_ = SomeValues(2 * 3 * kSize * kSize, 5);
};

TEST_F(PixelsTest, AreTheRowsOfTheirPatches) {
  const v1::EncodeResponse response = Call(FloatTensor({2, 3, kSize, kSize}, pixels_));
  EXPECT_EQ(ShapeOf(response.hidden_states()), (std::vector<int64_t>{2, 5, 32}));
  const v1::Tensor rows = FloatTensor({2, kGrid * kGrid, kWidth}, PatchesOf(pixels_, 2));
  EXPECT_EQ(response.hidden_states().data(), Call(rows).hidden_states().data());
}

TEST_F(PixelsTest, MayBeHalfAsWideAndMasked) {
  const v1::Tensor half = FloatTensor({2, 3, kSize, kSize}, pixels_, v1::BFLOAT16);
  const v1::Tensor rows =
      FloatTensor({2, kGrid * kGrid, kWidth}, PatchesOf(pixels_, 2), v1::BFLOAT16);
  *request_.mutable_attention_mask() = IntegerTensor({2, 4}, {1, 0, 1, 1, 0, 0, 0, 1});
  EXPECT_EQ(Call(half).hidden_states().data(), Call(rows).hidden_states().data());
}

TEST_F(PixelsTest, OfOtherShapesAreRefused) {
  EXPECT_THAT(Refusal(FloatTensor({1, 3, 5, 4}, std::vector<float>(60))),
              HasSubstr("features.shape: expected [B, 3, 5, 5]; got [1, 3, 5, 4]"));
  EXPECT_THAT(Refusal(FloatTensor({1, 1, 5, 5}, std::vector<float>(25))),
              HasSubstr("expected [B, 3, 5, 5]"));
  request_.set_layout(v1::SEQUENCE_FIRST);
  EXPECT_THAT(Refusal(FloatTensor({2, 3, 5, 5}, pixels_)),
              HasSubstr("layout: expected BATCH_FIRST with pixels"));
}

TEST_F(PixelsTest, AreTakenByTheOpenInferenceProtocol) {
  InferRequest request;
  request.set_model_name("images");
  AddRaw(request, "features", "FP32", {2, 3, kSize, kSize}, pixels_);
  const auto infer = [&](InferResponse* response) {
    grpc::ClientContext context;
    return inference::GRPCInferenceService::NewStub(server_.channel())
        ->ModelInfer(&context, request, response);
  };
  InferResponse response;
  const grpc::Status status = infer(&response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.raw_output_contents(0),
            Call(FloatTensor({2, 3, kSize, kSize}, pixels_)).hidden_states().data());
  request.mutable_inputs(0)->set_shape(1, 1);
  EXPECT_EQ(infer(&response).error_message(),
            "features.shape: expected [B, 3, 5, 5]; got [2, 1, 5, 5]");
  request.mutable_inputs(0)->add_shape(1);
  EXPECT_EQ(infer(&response).error_message(), "features.shape: expected 3 dimensions; got 5");
}

TEST_F(PixelsTest, AreNamedByTheirPlaceIfTheyAreNotFinite) {
  TestServerOptions options = Serving();
  options.limits.nonfinite = NonfinitePolicy::kReject;
  TestServer strict(options);
  std::vector<float> pixels = pixels_;
  pixels[((1 * 3 + 2) * kSize + 3) * kSize + 2] = std::numeric_limits<float>::infinity();
  request_.set_model("images");
  *request_.mutable_features() = FloatTensor({2, 3, kSize, kSize}, pixels);
  v1::EncodeResponse response;
  EXPECT_EQ(strict.Encode(request_, &response).error_message(),
            "features[1, 2, 3, 2]: expected a finite number; got inf");
}

TEST_F(PixelsTest, AreDescribed) {
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_model("images");
  v1::GetModelResponse response;
  ASSERT_TRUE(server_.stub().GetModel(&context, request, &response).ok());
  EXPECT_EQ(response.front().image_size(), kSize);
  EXPECT_EQ(response.front().patch_size(), kPatch);
  EXPECT_EQ(response.front().feature_width(), kWidth);
}

}  // namespace pixels_test
}  // namespace attendant::server
