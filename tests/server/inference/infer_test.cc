// Tests of ModelInfer's answers, which are those of Encode and Attend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/server/inference/infer_requests.h"
#include "tests/server/support/encode_calls.h"
#include "tests/server/support/text_models.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace infer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer(); }
  static void TearDownTestSuite() { delete server_; }

  static InferResponse Call(const InferRequest& request) {
    InferResponse response;
    const grpc::Status status = Infer(*server_, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  static v1::EncodeResponse Encode(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server_->Encode(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  static v1::AttendResponse Attend(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = server_->Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  inline static TestServer* server_ = nullptr;
};

// The call of attendant.v1 that IdsRequest stands for.
v1::EncodeRequest NativeRequest(const std::string& model) {
  v1::EncodeRequest request;
  request.set_model(model);
  *request.mutable_token_ids() = IntegerTensor({2, 4}, SomeIds());
  *request.mutable_attention_mask() = IntegerTensor({2, 4}, SomeMask());
  return request;
}

TEST_F(InferTest, AnswersIdsWithWhatTheModelGives) {
  const InferResponse response = Call(IdsRequest("tiny"));
  EXPECT_EQ(response.model_name(), "tiny");
  EXPECT_EQ(response.model_version(), "1");
  EXPECT_EQ(response.id(), "some id");
  ASSERT_EQ(response.outputs_size(), 2);
  ASSERT_EQ(response.raw_output_contents_size(), 2);
  v1::EncodeRequest native = NativeRequest("tiny");
  native.set_return_pooled(true);
  const v1::EncodeResponse expected = Encode(native);
  EXPECT_EQ(response.outputs(0).name(), "last_hidden_state");
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_THAT(ShapeOfOutput(response, 0), ElementsAre(2, 4, 32));
  EXPECT_EQ(response.raw_output_contents(0), expected.hidden_states().data());
  EXPECT_EQ(response.outputs(1).name(), "sentence_embedding");
  EXPECT_THAT(ShapeOfOutput(response, 1), ElementsAre(2, 32));
  EXPECT_EQ(response.raw_output_contents(1), expected.pooled().data());
}

TEST_F(InferTest, GivesOnlyTheOutputsAskedForInTheirOrder) {
  InferRequest request = IdsRequest("tiny");
  Ask(request, {"attentions.1", "sentence_embedding", "hidden_states.1", "token_embeddings"});
  const InferResponse response = Call(request);
  v1::EncodeRequest native = NativeRequest("tiny");
  native.set_return_pooled(true);
  native.add_attention_layers(1);
  native.add_intermediate_layers(0);
  const v1::EncodeResponse expected = Encode(native);
  ASSERT_EQ(response.outputs_size(), 4);
  EXPECT_EQ(response.outputs(0).name(), "attentions.1");
  EXPECT_THAT(ShapeOfOutput(response, 0), ElementsAre(2, 4, 4, 4));
  EXPECT_EQ(response.raw_output_contents(0), expected.attention_probabilities(0).tensor().data());
  EXPECT_EQ(response.raw_output_contents(1), expected.pooled().data());
  EXPECT_EQ(response.raw_output_contents(2), expected.intermediate(0).tensor().data());
  EXPECT_EQ(response.outputs(3).name(), "token_embeddings");
  EXPECT_EQ(response.raw_output_contents(3), expected.hidden_states().data());
}

TEST_F(InferTest, ScoresWithTheClassificationHead) {
  InferRequest request = IdsRequest("counting");
  Ask(request, {"logits"});
  v1::EncodeRequest native = NativeRequest("counting");
  native.set_return_pooled(true);
  native.set_pooling(v1::CLASSIFIER);
  const InferResponse response = Call(request);
  EXPECT_THAT(ShapeOfOutput(response, 0), ElementsAre(2, 3));
  EXPECT_EQ(response.raw_output_contents(0), Encode(native).pooled().data());
}

TEST_F(InferTest, TakesNarrowerIdsAndNoMask) {
  InferRequest request;
  request.set_model_name("tiny");
  AddRaw(request, "input_ids", "INT32", {1, 3}, std::vector<int32_t>{5, 6, 7});
  AddRaw(request, "token_type_ids", "UINT8", {1, 3}, std::vector<uint8_t>{0, 0, 1});
  AddRaw(request, "position_ids", "INT16", {1, 3}, std::vector<int16_t>{4, 5, 6});
  v1::EncodeRequest native;
  native.set_model("tiny");
  *native.mutable_token_ids() = IntegerTensor({1, 3}, {5, 6, 7});
  *native.mutable_token_type_ids() = IntegerTensor({1, 3}, {0, 0, 1});
  *native.mutable_position_ids() = IntegerTensor({1, 3}, {4, 5, 6});
  EXPECT_EQ(Call(request).raw_output_contents(0), Encode(native).hidden_states().data());
}

TEST_F(InferTest, TakesElementsInLists) {
  InferRequest request = IdsRequest("tiny");
  request.clear_raw_input_contents();
  for (const int64_t id : SomeIds()) {
    request.mutable_inputs(0)->mutable_contents()->add_int64_contents(id);
  }
  request.mutable_inputs(1)->set_datatype("BOOL");
  for (const int64_t keeps : SomeMask()) {
    request.mutable_inputs(1)->mutable_contents()->add_bool_contents(keeps != 0);
  }
  EXPECT_EQ(Call(request).raw_output_contents(0), Call(IdsRequest("tiny")).raw_output_contents(0));
}

// The mask in every datatype of integers.
TEST_F(InferTest, TakesListsOfAllDatatypes) {
  const std::string expected = Call(IdsRequest("tiny")).raw_output_contents(0);
  for (const std::string datatype :
       {"INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32", "UINT64", "INT64"}) {
    InferRequest request = IdsRequest("tiny");
    request.clear_raw_input_contents();
    for (const int64_t id : SomeIds()) {
      request.mutable_inputs(0)->mutable_contents()->add_int64_contents(id);
    }
    request.mutable_inputs(1)->set_datatype(datatype);
    auto& contents = *request.mutable_inputs(1)->mutable_contents();
    for (const int64_t keeps : SomeMask()) {
      if (datatype == "INT64")
        contents.add_int64_contents(keeps);
      else if (datatype == "UINT64")
        contents.add_uint64_contents(static_cast<uint64_t>(keeps));
      else if (datatype[0] == 'U')
        contents.add_uint_contents(static_cast<uint32_t>(keeps));
      else
        contents.add_int_contents(static_cast<int32_t>(keeps));
    }
    EXPECT_EQ(Call(request).raw_output_contents(0), expected) << datatype;
  }
}

// Not every client knows the list that belongs to a datatype.
TEST_F(InferTest, TakesWholeNumbersFromAnyList) {
  InferRequest plain = IdsRequest("tiny");
  const std::string expected = Call(plain).raw_output_contents(0);
  plain.clear_raw_input_contents();
  for (const int64_t id : SomeIds()) {
    plain.mutable_inputs(0)->mutable_contents()->add_fp64_contents(static_cast<double>(id));
  }
  for (const std::string datatype : {"INT64", "BOOL"}) {
    InferRequest ints = plain, floats = plain;
    ints.mutable_inputs(1)->set_datatype(datatype);
    floats.mutable_inputs(1)->set_datatype(datatype);
    for (const int64_t keeps : SomeMask()) {
      ints.mutable_inputs(1)->mutable_contents()->add_int_contents(static_cast<int32_t>(keeps));
      floats.mutable_inputs(1)->mutable_contents()->add_fp32_contents(static_cast<float>(keeps));
    }
    EXPECT_EQ(Call(ints).raw_output_contents(0), expected) << datatype;
    EXPECT_EQ(Call(floats).raw_output_contents(0), expected) << datatype;
  }
}

// No number that JSON has, but one that attention is asked to compute.
TEST_F(InferTest, TakesInfinityFromAList) {
  InferRequest raw, listed;
  raw.set_model_name("bare");
  AddRaw(raw, "hidden_states", "FP32", {1, 1, 4},
         std::vector<float>(4, std::numeric_limits<float>::infinity()));
  Ask(raw, {"context_layer"});
  listed = raw;
  listed.clear_raw_input_contents();
  for (int i = 0; i < 4; ++i) {
    listed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(
        std::numeric_limits<float>::infinity());
  }
  EXPECT_EQ(Call(listed).raw_output_contents(0), Call(raw).raw_output_contents(0));
}

// MLServer converts null and objects to parameters without a value, and empty lists stand beside
// raw contents.
TEST_F(InferTest, WhatHasNoValueIsAbsent) {
  InferRequest request = IdsRequest("tiny");
  for (const char* name : {"timeout", "stage", "normalize", "priority", "headers"}) {
    (*request.mutable_parameters())[name];
  }
  for (auto& input : *request.mutable_inputs()) {
    (*input.mutable_parameters())["shared_memory_region"];
    input.mutable_contents();
  }
  Ask(request, {"last_hidden_state"});
  (*request.mutable_outputs(0)->mutable_parameters())["classification"];
  EXPECT_EQ(Call(request).raw_output_contents(0), Call(IdsRequest("tiny")).raw_output_contents(0));
}

// As clients that have one type of numbers send them.
TEST_F(InferTest, ParametersMayBeWholeDoublesAndFlagsOfNumbers) {
  InferRequest request = IdsRequest("tiny"), plain = IdsRequest("tiny");
  (*request.mutable_parameters())["timeout"].set_double_param(60'000'000);
  (*request.mutable_parameters())["layer_count"].set_double_param(2);
  (*request.mutable_parameters())["normalize"].set_int64_param(1);
  (*plain.mutable_parameters())["normalize"].set_bool_param(true);
  EXPECT_EQ(Call(request).raw_output_contents(1), Call(plain).raw_output_contents(1));
}

InferRequest HiddenRequest(const std::string& model, const std::vector<float>& rows) {
  InferRequest request;
  request.set_model_name(model);
  AddRaw(request, "hidden_states", "FP32", {1, 3, 32}, rows);
  AddRaw(request, "attention_mask", "BOOL", {1, 3}, std::vector<uint8_t>{1, 1, 0});
  return request;
}

TEST_F(InferTest, TakesHiddenStatesAtAnyLayer) {
  const std::vector<float> rows = SomeValues(96, 1);
  InferRequest request = HiddenRequest("tiny.hidden", rows);
  (*request.mutable_parameters())["first_layer"].set_int64_param(1);
  (*request.mutable_parameters())["layer_count"].set_uint64_param(1);
  v1::EncodeRequest native;
  native.set_model("tiny");
  *native.mutable_hidden_states() = FloatTensor({1, 3, 32}, rows);
  *native.mutable_attention_mask() = IntegerTensor({1, 3}, {1, 1, 0});
  native.mutable_layers()->set_first(1);
  native.mutable_layers()->set_count(1);
  const InferResponse response = Call(request);
  EXPECT_EQ(response.model_name(), "tiny.hidden");
  EXPECT_EQ(response.raw_output_contents(0), Encode(native).hidden_states().data());
}

TEST_F(InferTest, AnswersAStageOfALayerAsAttendDoes) {
  const std::vector<float> rows = SomeValues(96, 2);
  v1::AttendRequest native = AttendOf("tiny", FloatTensor({1, 3, 32}, rows));
  native.set_layer(1);
  native.set_return_attention_probabilities(true);
  *native.mutable_attention_mask() = IntegerTensor({1, 3}, {1, 1, 0});
  for (const auto& [name, stage] :
       {std::pair("context", v1::CONTEXT), std::pair("projected", v1::PROJECTED),
        std::pair("block", v1::BLOCK)}) {
    InferRequest request = HiddenRequest("tiny.hidden", rows);
    (*request.mutable_parameters())["stage"].set_string_param(name);
    (*request.mutable_parameters())["layer"].set_int64_param(1);
    Ask(request, {"context_layer", "attentions"});
    native.set_stage(stage);
    const v1::AttendResponse expected = Attend(native);
    const InferResponse response = Call(request);
    EXPECT_EQ(response.raw_output_contents(0), expected.output().data()) << name;
    EXPECT_EQ(response.raw_output_contents(1), expected.attention_probabilities().data()) << name;
  }
}

TEST_F(InferTest, TheContextLayerNeedsNoStageWhenItIsAskedFor) {
  const std::vector<float> rows = SomeValues(96, 3);
  InferRequest request = HiddenRequest("tiny.hidden", rows);
  Ask(request, {"context_layer"});
  v1::AttendRequest native = AttendOf("tiny", FloatTensor({1, 3, 32}, rows));
  *native.mutable_attention_mask() = IntegerTensor({1, 3}, {1, 1, 0});
  EXPECT_EQ(Call(request).raw_output_contents(0), Attend(native).output().data());
}

TEST_F(InferTest, TakesAndGivesHalves) {
  const std::vector<float> rows = SomeValues(96, 4);
  const v1::Tensor halves = FloatTensor({1, 3, 32}, rows, v1::FLOAT16);
  InferRequest request;
  request.set_model_name("tiny.hidden");
  AddRaw(request, "hidden_states", "FP16", {1, 3, 32},
         std::vector<char>(halves.data().begin(), halves.data().end()));
  v1::EncodeRequest native;
  native.set_model("tiny");
  *native.mutable_hidden_states() = halves;
  native.set_output_dtype(v1::FLOAT32);
  EXPECT_EQ(Call(request).raw_output_contents(0), Encode(native).hidden_states().data());
  (*request.mutable_parameters())["output_datatype"].set_string_param("BF16");
  native.set_output_dtype(v1::BFLOAT16);
  const InferResponse response = Call(request);
  EXPECT_EQ(response.outputs(0).datatype(), "BF16");
  EXPECT_EQ(response.raw_output_contents(0), Encode(native).hidden_states().data());
}

TEST_F(InferTest, AModelWithoutEmbeddingsTakesHiddenStatesByItsName) {
  InferRequest request;
  request.set_model_name("bare");
  AddRaw(request, "hidden_states", "FP32", {1, 3, 4},
         std::vector<float>{1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1});
  Ask(request, {"context_layer"});
  const InferResponse response = Call(request);
  EXPECT_THAT(ShapeOfOutput(response, 0), ElementsAre(1, 3, 3));
  EXPECT_NEAR(FloatsOf(response, 0)[0], 1.936621f, 2e-6);
}

TEST_F(InferTest, TakesFeaturesByTheNameOfAModelOfPatches) {
  const std::vector<float> rows = SomeValues(96, 5);
  InferRequest request;
  request.set_model_name("patches");
  AddRaw(request, "features", "FP32", {1, 3, 32}, rows);
  v1::EncodeRequest native;
  native.set_model("patches");
  *native.mutable_features() = FloatTensor({1, 3, 32}, rows);
  EXPECT_EQ(Call(request).raw_output_contents(0), Encode(native).hidden_states().data());
}

TEST_F(InferTest, NormalizesAndTruncatesWhenAsked) {
  InferRequest request;
  request.set_model_name("tiny");
  std::vector<int64_t> ids;
  for (int i = 0; i < 80; ++i) ids.push_back(i);
  AddRaw(request, "input_ids", "INT64", {1, 80}, ids);
  (*request.mutable_parameters())["normalize"].set_bool_param(true);
  Ask(request, {"sentence_embedding"});
  InferResponse unanswered;
  EXPECT_THAT(Infer(*server_, request, &unanswered).error_message(),
              HasSubstr("input_ids: expected at most 64 positions in a sequence; got 80"));
  (*request.mutable_parameters())["truncate"].set_bool_param(true);
  v1::EncodeRequest native;
  native.set_model("tiny");
  *native.mutable_token_ids() = IntegerTensor({1, 80}, ids);
  native.set_truncation(v1::TRUNCATE_RIGHT);
  native.set_return_pooled(true);
  native.set_normalize_pooled(true);
  EXPECT_EQ(Call(request).raw_output_contents(0), Encode(native).pooled().data());
}

// On the left, ids would lose [CLS].
TEST(InferTruncationTest, OfIdsIsOnTheRightWhateverTheModelsSide) {
  TestServerOptions options;
  options.models = TestModels();
  TruncateOnTheLeft(options.models, "tiny");
  TestServer server(options);
  InferRequest request;
  request.set_model_name("tiny");
  std::vector<int64_t> ids;
  for (int i = 0; i < 80; ++i) ids.push_back(i);
  AddRaw(request, "input_ids", "INT64", {1, 80}, ids);
  (*request.mutable_parameters())["truncate"].set_bool_param(true);
  Ask(request, {"sentence_embedding"});
  InferResponse response;
  const grpc::Status status = Infer(server, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::EncodeRequest native;
  native.set_model("tiny");
  *native.mutable_token_ids() = IntegerTensor({1, 80}, ids);
  native.set_truncation(v1::TRUNCATE_RIGHT);
  native.set_return_pooled(true);
  EXPECT_EQ(response.raw_output_contents(0), EncodeOk(server, native).pooled().data());
}

// tritonclient's own, and a deadline that is far away.
TEST_F(InferTest, IgnoresParametersThatItDoesNotKnow) {
  InferRequest request = IdsRequest("tiny");
  (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  (*request.mutable_parameters())["headers"].set_string_param("x");
  (*request.mutable_parameters())["priority"].set_uint64_param(1);
  (*request.mutable_parameters())["timeout"].set_int64_param(60'000'000);
  request.set_model_version("1");
  EXPECT_EQ(Call(request).raw_output_contents(0), Call(IdsRequest("tiny")).raw_output_contents(0));
}

TEST_F(InferTest, AMaskedSequenceIsZeros) {
  InferRequest request = HiddenRequest("tiny.hidden", SomeValues(96, 6));
  *request.mutable_raw_input_contents(1) = std::string(3, '\0');
  EXPECT_THAT(FloatsOf(Call(request), 0), testing::Each(0.0f));
}

TEST_F(InferTest, EndsWhenItsTimeoutHasPassed) {
  InferRequest request = IdsRequest("tiny");
  (*request.mutable_parameters())["timeout"].set_int64_param(1);
  InferResponse response;
  const grpc::Status status = Infer(*server_, request, &response);
  EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED) << status.error_message();
}

}  // namespace infer_test
}  // namespace attendant::server
