// Tests of the methods of the Open Inference Protocol other than ModelInfer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/server/inference/infer_requests.h"
#include "tests/support/raw_call.h"

namespace attendant::server {
namespace inference_methods_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;

class InferenceMethodsTest : public ::testing::Test {
 protected:
  // Calls a method, whose answer is expected to have this code.
  template <typename Response, typename Request>
  Response Call(grpc::Status (InferStub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request = {}, grpc::StatusCode code = grpc::StatusCode::OK) {
    grpc::ClientContext context;
    Response response;
    const grpc::Status status = (*stub_.*method)(&context, request, &response);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    return response;
  }

  bool IsReady(const std::string& name, const std::string& version = "") {
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    return Call(&InferStub::ModelReady, request).ready();
  }

  inference::ModelMetadataResponse Metadata(const std::string& name) {
    inference::ModelMetadataRequest request;
    request.set_name(name);
    return Call(&InferStub::ModelMetadata, request);
  }

  inference::ModelStatistics Statistics(const std::string& name) {
    inference::ModelStatisticsRequest request;
    request.set_name(name);
    return Call(&InferStub::ModelStatistics, request).model_stats(0);
  }

  TestServer server_;
  std::unique_ptr<InferStub> stub_ = inference::GRPCInferenceService::NewStub(server_.channel());
};

TEST_F(InferenceMethodsTest, ServerIsLiveAndReadyUntilItDrains) {
  EXPECT_TRUE(Call(&InferStub::ServerLive, inference::ServerLiveRequest()).live());
  EXPECT_TRUE(Call(&InferStub::ServerReady, inference::ServerReadyRequest()).ready());
  server_.service().health().Shutdown();
  EXPECT_TRUE(Call(&InferStub::ServerLive, inference::ServerLiveRequest()).live());
  EXPECT_FALSE(Call(&InferStub::ServerReady, inference::ServerReadyRequest()).ready());
  EXPECT_FALSE(IsReady("tiny"));
}

TEST_F(InferenceMethodsTest, ModelsAreReadyInTheVersionThatIsServed) {
  for (const char* name : {"tiny", "tiny.hidden", "bare"}) EXPECT_TRUE(IsReady(name)) << name;
  EXPECT_TRUE(IsReady("tiny", "1"));
  EXPECT_FALSE(IsReady("tiny", "2"));
  EXPECT_FALSE(IsReady("nope"));
}

TEST_F(InferenceMethodsTest, ServerMetadataListsTheExtensionsThatWork) {
  const auto metadata = Call(&InferStub::ServerMetadata, inference::ServerMetadataRequest());
  EXPECT_EQ(metadata.name(), "attendant");
  EXPECT_THAT(metadata.version(), HasSubstr("."));
  EXPECT_THAT(metadata.extensions(),
              ElementsAre("model_configuration", "model_repository", "statistics"));
}

template <typename Shape>
auto IsTensor(const char* name, const char* datatype, Shape shape) {
  using Metadata = inference::ModelMetadataResponse::TensorMetadata;
  return AllOf(Property(&Metadata::name, name), Property(&Metadata::datatype, datatype),
               Property("shape", &Metadata::shape, shape));
}

TEST_F(InferenceMethodsTest, MetadataTellsTheTensorsOfEachName) {
  const auto tiny = Metadata("tiny");
  EXPECT_EQ(tiny.name(), "tiny");
  EXPECT_THAT(tiny.versions(), ElementsAre("1"));
  EXPECT_EQ(tiny.platform(), "attendant");
  EXPECT_THAT(tiny.inputs(), ElementsAre(IsTensor("input_ids", "INT64", ElementsAre(-1, -1)),
                                         IsTensor("attention_mask", "INT64", ElementsAre(-1, -1)),
                                         IsTensor("token_type_ids", "INT64", ElementsAre(-1, -1))));
  EXPECT_THAT(tiny.outputs(),
              ElementsAre(IsTensor("last_hidden_state", "FP32", ElementsAre(-1, -1, 32)),
                          IsTensor("sentence_embedding", "FP32", ElementsAre(-1, 32))));
  EXPECT_THAT(Metadata("tiny.hidden").inputs(),
              ElementsAre(IsTensor("hidden_states", "FP32", ElementsAre(-1, -1, 32)),
                          IsTensor("attention_mask", "INT64", ElementsAre(-1, -1))));
  EXPECT_THAT(Metadata("counting").outputs(),
              ElementsAre(IsTensor("last_hidden_state", "FP32", ElementsAre(-1, -1, 32)),
                          IsTensor("logits", "FP32", ElementsAre(-1, 3))));
  EXPECT_THAT(Metadata("patches").inputs(),
              ElementsAre(IsTensor("features", "FP32", ElementsAre(-1, -1, 32)),
                          IsTensor("attention_mask", "INT64", ElementsAre(-1, -1))));
  EXPECT_THAT(Metadata("bare").inputs(),
              ElementsAre(IsTensor("hidden_states", "FP32", ElementsAre(-1, -1, 4)),
                          IsTensor("attention_mask", "INT64", ElementsAre(-1, -1))));
  EXPECT_THAT(Metadata("bare").outputs(),
              ElementsAre(IsTensor("last_hidden_state", "FP32", ElementsAre(-1, -1, 3))));
}

TEST_F(InferenceMethodsTest, ConfigurationLeavesOutTheBatch) {
  inference::ModelConfigRequest request;
  request.set_name("tiny");
  const inference::ModelConfig config = Call(&InferStub::ModelConfig, request).config();
  EXPECT_EQ(config.name(), "tiny");
  EXPECT_EQ(config.max_batch_size(), 256);
  ASSERT_EQ(config.input_size(), 3);
  EXPECT_EQ(config.input(0).name(), "input_ids");
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_INT64);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(-1));
  EXPECT_FALSE(config.input(0).optional());
  EXPECT_TRUE(config.input(1).optional());
  ASSERT_EQ(config.output_size(), 2);
  EXPECT_EQ(config.output(1).name(), "sentence_embedding");
  EXPECT_EQ(config.output(1).data_type(), inference::TYPE_FP32);
  EXPECT_THAT(config.output(1).dims(), ElementsAre(32));
  EXPECT_TRUE(config.has_dynamic_batching());
  ASSERT_EQ(config.instance_group_size(), 1);
  EXPECT_EQ(config.instance_group(0).count(), 1);
  EXPECT_EQ(config.instance_group(0).kind(), inference::ModelInstanceGroup::KIND_CPU);
}

TEST_F(InferenceMethodsTest, UnknownModelsHaveNothingToTell) {
  inference::ModelMetadataRequest metadata;
  metadata.set_name("nope");
  Call(&InferStub::ModelMetadata, metadata, grpc::StatusCode::NOT_FOUND);
  inference::ModelConfigRequest config;
  config.set_name("tiny");
  config.set_version("2");
  Call(&InferStub::ModelConfig, config, grpc::StatusCode::NOT_FOUND);
  inference::ModelStatisticsRequest statistics;
  statistics.set_name("tiny");
  statistics.set_version("one");
  Call(&InferStub::ModelStatistics, statistics, grpc::StatusCode::INVALID_ARGUMENT);
}

// An answer leaves before it is counted.
TEST_F(InferenceMethodsTest, StatisticsAreTheSumsOfAllCalls) {
  constexpr int kCalls = 5;
  InferResponse response;
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(Infer(server_, IdsRequest("tiny"), &response).ok());
  }
  InferRequest hopeless = IdsRequest("tiny");
  (*hopeless.mutable_parameters())["timeout"].set_int64_param(1);
  ASSERT_FALSE(Infer(server_, hopeless, &response).ok());
  while (Statistics("tiny").inference_stats().fail().count() < 1 ||
         Statistics("tiny").inference_stats().success().count() < kCalls ||
         Statistics("tiny").execution_count() < kCalls) {
    std::this_thread::yield();
  }
  const inference::ModelStatistics told = Statistics("tiny.hidden");
  EXPECT_EQ(told.name(), "tiny.hidden");
  EXPECT_EQ(told.version(), "1");
  EXPECT_EQ(told.inference_count(), 2 * kCalls);
  EXPECT_EQ(told.execution_count(), kCalls);
  EXPECT_GT(told.last_inference(), 0);
  const inference::InferStatistics& stats = told.inference_stats();
  EXPECT_EQ(stats.success().count(), kCalls);
  EXPECT_EQ(stats.fail().count(), 1);
  for (const auto* part :
       {&stats.queue(), &stats.compute_input(), &stats.compute_infer(), &stats.compute_output()}) {
    EXPECT_EQ(part->count(), kCalls);
  }
  EXPECT_GT(stats.compute_infer().ns(), 0);
  EXPECT_LE(stats.queue().ns() + stats.compute_infer().ns(), stats.success().ns());
}

TEST_F(InferenceMethodsTest, StatisticsOfAllModelsNameEach) {
  const auto all = Call(&InferStub::ModelStatistics, inference::ModelStatisticsRequest());
  EXPECT_EQ(all.model_stats_size(), static_cast<int>(TestModels().size()));
  for (const inference::ModelStatistics& stats : all.model_stats()) {
    EXPECT_EQ(stats.inference_count(), 0) << stats.name();
    EXPECT_EQ(stats.last_inference(), 0) << stats.name();
  }
}

TEST_F(InferenceMethodsTest, TheRepositoryListsEveryNameAndRefusedVersions) {
  server_.models().SetRefused("bare", {{3, "its weights do not fit"}});
  server_.models().SetRefused("org/broken", {{2, "two"}, {1, "one"}});
  const auto index = Call(&InferStub::RepositoryIndex, inference::RepositoryIndexRequest());
  std::vector<std::string> told;
  for (const auto& model : index.models()) {
    told.push_back(model.name() + " " + model.version() + " " + model.state() +
                   (model.reason().empty() ? "" : " " + model.reason()));
  }
  EXPECT_THAT(told, testing::IsSupersetOf(
                        {"bare 1 READY", "bare 3 UNAVAILABLE its weights do not fit",
                         "tiny 1 READY", "tiny.hidden 1 READY", "org/broken 2 UNAVAILABLE two",
                         "org/broken 1 UNAVAILABLE one"}));
  inference::RepositoryIndexRequest ready;
  ready.set_ready(true);
  const auto served = Call(&InferStub::RepositoryIndex, ready);
  EXPECT_LT(served.models_size(), index.models_size());
  for (const auto& model : served.models()) EXPECT_EQ(model.state(), "READY");
}

TEST_F(InferenceMethodsTest, ThereIsNoSharedMemoryToForget) {
  Call(&InferStub::SystemSharedMemoryUnregister, inference::SharedMemoryUnregisterRequest());
  Call(&InferStub::CudaSharedMemoryUnregister, inference::SharedMemoryUnregisterRequest());
  Call(&InferStub::SystemSharedMemoryStatus, inference::SharedMemoryStatusRequest());
  Call(&InferStub::CudaSharedMemoryStatus, inference::SharedMemoryStatusRequest());
}

TEST_F(InferenceMethodsTest, MethodsThatAreMissingSayWhy) {
  const std::pair<const char*, const char*> refused[] = {
      {"ModelStreamInfer", "streaming inference is not supported"},
      {"SystemSharedMemoryRegister", "shared memory is not supported"},
      {"CudaSharedMemoryRegister", "shared memory is not supported"},
      {"RepositoryModelLoad", "--model-repository"},
      {"RepositoryModelUnload", "--model-repository"},
      {"TraceSetting", "trace settings are not supported"},
      {"LogSettings", "--log-level"},
      {"Nothing", "the server has no such method"}};
  for (const auto& [method, why] : refused) {
    RawCall call(server_.channel(), std::string("/inference.GRPCInferenceService/") + method);
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr(why)) << method;
  }
}

}  // namespace inference_methods_test
}  // namespace attendant::server
