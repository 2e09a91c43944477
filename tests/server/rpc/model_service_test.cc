#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kernels/gemm/gemm_choice.h"
#include "tests/server/support/test_server.h"
#include "tests/support/raw_call.h"

namespace attendant::server {
namespace model_service_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

class ModelServiceTest : public ::testing::Test {
 protected:
  grpc::Status Get(const std::string& name, v1::GetModelResponse* response) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_model(name);
    return server_.stub().GetModel(&context, request, response);
  }

  TestServer server_;
};

TEST_F(ModelServiceTest, ListsNamesInOrder) {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  ASSERT_TRUE(server_.stub().ListModels(&context, {}, &response).ok());
  EXPECT_THAT(response.names(),
              ElementsAre("bare", "counting", "linear", "mixed", "patches", "tiny"));
  server_.ExpectMetrics(HasSubstr("method=\"ListModels\""));
}

TEST_F(ModelServiceTest, DescribesAModel) {
  v1::GetModelResponse response;
  ASSERT_TRUE(Get("tiny", &response).ok());
  EXPECT_EQ(response.name(), "tiny");
  EXPECT_EQ(response.layers(), 2);
  EXPECT_EQ(response.layer().hidden_size(), 32);
  EXPECT_EQ(response.layer().heads(), 4);
  EXPECT_EQ(response.layer().key_width(), 8);
  EXPECT_EQ(response.layer().value_width(), 8);
  EXPECT_EQ(response.layer().feed_forward_width(), 64);
  EXPECT_FLOAT_EQ(response.layer().score_scale(), 0.35355339f);
  EXPECT_EQ(response.layer().norm_placement(), "post");
  EXPECT_EQ(response.layer().activation(), "gelu");
  EXPECT_TRUE(response.layer().has_output_projection());
  EXPECT_EQ(response.layer().output_width(), 32);
  EXPECT_EQ(response.layer().input_projections(), 3);
  EXPECT_EQ(response.embeddings().vocabulary(), 100);
  EXPECT_EQ(response.embeddings().positions(), 64);
  EXPECT_EQ(response.embeddings().longest_sequence(), 64);
  EXPECT_EQ(response.embeddings().token_types(), 2);
  EXPECT_EQ(response.embeddings().width(), 32);
  EXPECT_EQ(response.layer().bottleneck(), 0);
  EXPECT_EQ(response.layer().feed_forwards(), 1);
  EXPECT_EQ(response.layer().convolution().taps(), 0);
  EXPECT_THAT(response.convolution_layers(), ElementsAre());
  EXPECT_EQ(response.layer().experts(), 0);
  EXPECT_THAT(response.expert_layers(), ElementsAre());
  EXPECT_THAT(response.pooling().modes(), ElementsAre("mean"));
  EXPECT_TRUE(response.pooling().normalize());
  EXPECT_EQ(response.pooling().width(), 32);
  EXPECT_EQ(response.pooled_width(), 32);
  EXPECT_FALSE(response.emulate());
  EXPECT_EQ(response.compute_dtype(), v1::FLOAT32);
  EXPECT_EQ(response.compute_type(), "f32");
  EXPECT_EQ(response.gemm(), UsesVectorGemm({}) ? "vector" : "onednn");
  EXPECT_EQ(response.weight_type(), "f32");
  EXPECT_GT(response.weight_bytes(), 0);
  ASSERT_EQ(response.stage_costs_size(), 6);
  EXPECT_EQ(response.stage_costs(0).stage(), "attention.qkv");
  EXPECT_EQ(response.stage_costs(0).flops_per_token(), 2 * 2 * 32 * 96);
  EXPECT_EQ(response.stage_costs(1).stage(), "attention.scores");
  EXPECT_EQ(response.stage_costs(1).flops_per_pair(), 2 * 2 * 32);
  EXPECT_EQ(response.stage_costs(5).stage(), "feed_forward.out");
  EXPECT_GT(response.cost_model().product_flops_per_second(), 0);
  EXPECT_GT(response.cost_model().attention_flops_per_second(), 0);
  EXPECT_GT(response.cost_model().correction(), 0);
  EXPECT_THAT(response.unused_tensors(), ElementsAre("cls.bias"));
  EXPECT_EQ(response.limits().max_request_tokens(), 256);
  EXPECT_EQ(response.limits().max_batch_tokens(), 128);
  EXPECT_EQ(response.limits().max_request_bytes(), 1 << 20);
  EXPECT_EQ(response.limits().max_answer_bytes(), 1 << 20);
  EXPECT_EQ(response.thread_plan().instances(), 1);
  EXPECT_EQ(response.thread_plan().threads_per_instance(), 2);
  EXPECT_EQ(response.thread_plan().rows_per_thread_from(), 0);
  EXPECT_FALSE(response.thread_plan().isa().empty());
  EXPECT_FALSE(response.thread_plan().onednn_version().empty());
  EXPECT_EQ(response.thread_plan().instance_nodes_size(), 0);
}

TEST_F(ModelServiceTest, SaysWhatAModelLacks) {
  v1::GetModelResponse response;
  ASSERT_TRUE(Get("bare", &response).ok());
  EXPECT_EQ(response.layer().output_width(), 3);
  EXPECT_FALSE(response.has_embeddings());
  EXPECT_FALSE(response.has_pooling());
  EXPECT_FALSE(response.has_classifier());
  EXPECT_EQ(response.pooled_width(), 0);
  EXPECT_EQ(response.layer().norm_placement(), "none");
  EXPECT_FALSE(response.has_front());
  EXPECT_EQ(response.classes(), 0);
  EXPECT_EQ(response.layer().window(), 0);
  EXPECT_EQ(response.layer().attention(), "softmax");
  EXPECT_THAT(response.windowed_layers(), ElementsAre());
  ASSERT_TRUE(Get("counting", &response).ok());
  EXPECT_EQ(response.embeddings().longest_sequence(), 62);
  EXPECT_EQ(response.classes(), 3);
  EXPECT_EQ(response.classifier().width(), 3);
}

TEST_F(ModelServiceTest, DescribesFrontsAndWindows) {
  v1::GetModelResponse response;
  ASSERT_TRUE(Get("linear", &response).ok());
  EXPECT_EQ(response.layer().attention(), "linear");
  ASSERT_TRUE(Get("patches", &response).ok());
  EXPECT_EQ(response.front().own_rows(), 3);
  EXPECT_EQ(response.front().features(), 3);
  EXPECT_TRUE(response.front().needs_every());
  EXPECT_EQ(response.layer().window(), 4);
  EXPECT_EQ(response.layer().window_block(), 1);
  EXPECT_EQ(response.layer().first_global_blocks(), 1);
  EXPECT_EQ(response.layer().last_global_blocks(), 0);
  EXPECT_EQ(response.layer().full_attention_up_to(), 2);
  EXPECT_THAT(response.windowed_layers(), ElementsAre(1));
  ASSERT_EQ(response.block_pairs_size(), 2);
  EXPECT_EQ(response.block_pairs(0).query(), 4);
  EXPECT_EQ(response.block_pairs(0).key(), 11);
  EXPECT_EQ(response.block_pairs(1).query(), 9);
  EXPECT_THAT(response.global_blocks(), ElementsAre(30));
}

TEST_F(ModelServiceTest, NamesWhatItDoesNotHave) {
  v1::GetModelResponse response;
  const grpc::Status missing = Get("x", &response);
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(missing.error_message(),
            "model: not found (no model is named \"x\"); the models are \"bare\", \"mixed\", "
            "\"tiny\", \"linear\", \"patches\", \"counting\"");
  const grpc::Status unnamed = Get("", &response);
  EXPECT_EQ(unnamed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(unnamed.error_message(), "model: expected a name (the server has 6 models); got none");
}

TEST_F(ModelServiceTest, RefusesAMalformedRequest) {
  RawCall call(server_.channel(), "/attendant.v1.EncoderService/GetModel");
  call.Write(TextField(1, "\xff"));
  call.WritesDone();
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("malformed attendant.v1.GetModelRequest: a string is not UTF-8"));
  server_.ExpectMetrics(HasSubstr("code=\"INVALID_ARGUMENT\",method=\"GetModel\""));
}

TEST_F(ModelServiceTest, ReflectionKnowsEveryMethod) {
  RawCall call(server_.channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  // ServerReflectionRequest: list_services = 7, file_containing_symbol = 4.
  ASSERT_TRUE(call.Write(TextField(7, "*")));
  EXPECT_THAT(call.Read(), Optional(HasSubstr("attendant.v1.EncoderService")));
  ASSERT_TRUE(call.Write(TextField(4, "attendant.v1.EncoderService")));
  const std::optional<std::string> answer = call.Read();
  for (const char* method : {"Attend", "Encode", "EncodeStream", "ListModels", "GetModel"}) {
    EXPECT_THAT(answer, Optional(HasSubstr(method)));
  }
  call.WritesDone();
  EXPECT_TRUE(call.Finish().ok());
}

TEST(OnlyModelTest, NeedsNoName) {
  TestServerOptions options;
  options.models = {{"tiny", TestModels().at("tiny")}};
  TestServer server(options);
  grpc::ClientContext context;
  v1::GetModelResponse response;
  ASSERT_TRUE(server.stub().GetModel(&context, {}, &response).ok());
  EXPECT_EQ(response.name(), "tiny");
}

}  // namespace model_service_test
}  // namespace attendant::server
