#include "client/load_requests/oip_request.h"

#include <gtest/gtest.h>

#include "client/prepared_request_wire.h"
#include "inference/inference_service.pb.h"

namespace attendant::client {
namespace oip_request_test {

inference::ModelInferRequest Parsed(const PreparedRequest& request) {
  EXPECT_EQ(request.wire().method, "/inference.GRPCInferenceService/ModelInfer");
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(request.wire().message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  inference::ModelInferRequest message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message;
}

TEST(OipRequestTest, PaddedRowsHaveAMask) {
  const inference::ModelInferRequest message =
      Parsed(MakeOipRequest({.model = "m",
                             .input = "input_ids",
                             .rows = Int64Tensor({2, 3}, {5, 6, 7, 8, 0, 0}),
                             .lengths = {3, 1},
                             .output = "sentence_embedding"}));
  EXPECT_EQ(message.model_name(), "m");
  ASSERT_EQ(message.inputs_size(), 2);
  EXPECT_EQ(message.inputs(0).name(), "input_ids");
  EXPECT_EQ(message.inputs(0).datatype(), "INT64");
  EXPECT_EQ(message.inputs(0).shape(1), 3);
  EXPECT_EQ(message.inputs(1).name(), "attention_mask");
  ASSERT_EQ(message.raw_input_contents_size(), 2);
  EXPECT_EQ(message.raw_input_contents(0), Int64Tensor({2, 3}, {5, 6, 7, 8, 0, 0}).data);
  EXPECT_EQ(message.raw_input_contents(1), Int64Tensor({2, 3}, {1, 1, 1, 1, 0, 0}).data);
  ASSERT_EQ(message.outputs_size(), 1);
  EXPECT_EQ(message.outputs(0).name(), "sentence_embedding");
}

TEST(OipRequestTest, FullRowsHaveNone) {
  for (const auto& [dtype, name] : {std::pair(DataType::kFloat32, "FP32"),
                                    {DataType::kFloat16, "FP16"},
                                    {DataType::kBFloat16, "BF16"}}) {
    const std::vector<float> values = {1, 2, 3, 4};
    const inference::ModelInferRequest message =
        Parsed(MakeOipRequest({.model = "m.hidden",
                               .input = "hidden_states",
                               .rows = *ConvertFloat(FloatTensor({1, 2, 2}, values), dtype),
                               .lengths = {2},
                               .output = "last_hidden_state"}));
    ASSERT_EQ(message.inputs_size(), 1);
    EXPECT_EQ(message.inputs(0).datatype(), name);
    EXPECT_EQ(message.inputs(0).shape_size(), 3);
  }
}

}  // namespace oip_request_test
}  // namespace attendant::client
