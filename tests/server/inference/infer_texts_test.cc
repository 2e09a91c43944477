// Tests of ModelInfer with texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/inference/infer_requests.h"
#include "tests/server/support/encode_calls.h"
#include "tests/server/support/text_models.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace infer_texts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As Triton's clients write BYTES.
std::string RawTexts(const std::vector<std::string>& texts) {
  std::string raw;
  for (const std::string& text : texts) {
    const auto length = static_cast<uint32_t>(text.size());
    raw.append(reinterpret_cast<const char*>(&length), sizeof(length));
    raw.append(text);
  }
  return raw;
}

void AddTexts(InferRequest& request, const std::string& name, std::vector<int64_t> shape) {
  auto& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype("BYTES");
  input.mutable_shape()->Add(shape.begin(), shape.end());
}

InferRequest RawRequest(const std::vector<std::string>& texts, std::vector<int64_t> shape) {
  InferRequest request;
  request.set_model_name("tiny");
  AddTexts(request, "text", std::move(shape));
  request.add_raw_input_contents(RawTexts(texts));
  return request;
}

InferRequest RawRequest(const std::vector<std::string>& texts) {
  return RawRequest(texts, {static_cast<int64_t>(texts.size())});
}

class InferTextsTest : public ::testing::Test {
 protected:
  static TestServerOptions Serving() {
    TestServerOptions options;
    options.models = TextModels();
    return options;
  }
  static void SetUpTestSuite() { server_ = new TestServer(Serving()); }
  static void TearDownTestSuite() { delete server_; }

  static InferResponse Call(const InferRequest& request) {
    InferResponse response;
    const grpc::Status status = Infer(*server_, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  static void ExpectRefused(const InferRequest& request, const std::string& message) {
    InferResponse response;
    const grpc::Status status = Infer(*server_, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }

  static v1::EncodeResponse Encode(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server_->Encode(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  inline static TestServer* server_ = nullptr;
};

TEST_F(InferTextsTest, AreThoseOfEncode) {
  v1::EncodeRequest native;
  native.set_model("tiny");
  native.add_texts("hello");
  native.add_texts("hello world");
  native.set_pad_texts(true);
  native.set_return_pooled(true);
  const v1::EncodeResponse expected = Encode(native);
  const InferResponse response = Call(RawRequest({"hello", "hello world"}));
  ASSERT_EQ(response.outputs_size(), 2);
  EXPECT_EQ(response.outputs(0).name(), "last_hidden_state");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 4, 32));
  EXPECT_EQ(response.raw_output_contents(0), expected.hidden_states().data());
  EXPECT_EQ(response.raw_output_contents(1), expected.pooled().data());
  EXPECT_EQ(Call(RawRequest({"hello", "hello world"}, {2, 1})).raw_output_contents(1),
            expected.pooled().data());
}

TEST_F(InferTextsTest, ComeInListsAndPairsAndHavePrompts) {
  v1::EncodeRequest native;
  native.set_model("tiny");
  native.add_texts("hello");
  native.add_text_pairs("world");
  native.set_return_pooled(true);
  InferRequest request;
  request.set_model_name("tiny");
  AddTexts(request, "text", {1});
  request.mutable_inputs(0)->mutable_contents()->add_bytes_contents("hello");
  AddTexts(request, "text_pair", {1});
  request.mutable_inputs(1)->mutable_contents()->add_bytes_contents("world");
  Ask(request, {"sentence_embedding"});
  EXPECT_EQ(Call(request).raw_output_contents(0), Encode(native).pooled().data());
  native.clear_text_pairs();
  native.set_prompt_name("query");
  request.mutable_inputs()->RemoveLast();
  (*request.mutable_parameters())["prompt_name"].set_string_param("query");
  EXPECT_EQ(Call(request).raw_output_contents(0), Encode(native).pooled().data());
  (*request.mutable_parameters())["prompt_name"].set_string_param("passage");
  ExpectRefused(request, "prompt_name: expected one of the model's prompts");
  (*request.mutable_parameters())["prompt_name"].set_int64_param(1);
  ExpectRefused(request, "prompt_name");
}

TEST(InferTruncationOfTextsTest, IsOnTheModelsSide) {
  TestServerOptions options;
  options.models = TextModels();
  TruncateOnTheLeft(options.models, "tiny");
  TestServer server(options);
  const std::string text = "hello hello hello hello hello hello world good bye";
  InferRequest request = RawRequest({text});
  (*request.mutable_parameters())["truncate"].set_bool_param(true);
  Ask(request, {"sentence_embedding"});
  InferResponse response;
  const grpc::Status status = Infer(server, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::EncodeRequest native;
  native.set_model("tiny");
  native.add_texts(text);
  native.set_truncation(v1::TRUNCATE_LEFT);
  native.set_return_pooled(true);
  EXPECT_EQ(response.raw_output_contents(0), EncodeOk(server, native).pooled().data());
}

TEST_F(InferTextsTest, AreRefusedByName) {
  ExpectRefused(RawRequest({"a", "b"}, {3}),
                "text: expected 3 texts (its shape), and at most 1024; got 2");
  ExpectRefused(RawRequest({}), "text: expected at least one text; got none");
  ExpectRefused(RawRequest({"a"}, {1, 1, 1}), "text.shape: expected [B] or [B, 1]; got [1, 1, 1]");
  ExpectRefused(RawRequest({"a", "b"}, {1, 2}), "text.shape: expected [B] or [B, 1]; got [1, 2]");
  ExpectRefused(RawRequest(std::vector<std::string>(1025, "")), "at most 1024; got more");
  InferRequest request = RawRequest({"hello"});
  request.mutable_raw_input_contents(0)->pop_back();
  ExpectRefused(request,
                "text: expected each text as a 4-byte length and its bytes; got 8 bytes left at "
                "text 0");
  request.mutable_raw_input_contents(0)->resize(3);
  ExpectRefused(request,
                "text: expected each text as a 4-byte length and its bytes; got 3 bytes left at "
                "text 0");
  request = RawRequest({"hello"});
  request.mutable_inputs(0)->set_datatype("INT64");
  ExpectRefused(request, "text.datatype: expected BYTES; got");
  request = RawRequest({"hello"});
  request.mutable_inputs(0)->set_name("input_ids");
  ExpectRefused(request, "BF16; got \"BYTES\"; send texts as the input text");
  request.mutable_inputs(0)->set_name("words");
  ExpectRefused(request, "token_type_ids, position_ids, text, text_pair; got \"words\"");
  request = RawRequest({"hello", "a\xff"});
  ExpectRefused(request, "text[1]: expected UTF-8; got something else at byte 1");
  request = RawRequest({"hello"});
  request.set_model_name("bare");
  ExpectRefused(request, "inputs: expected one of hidden_states, attention_mask; got");
  request = IdsRequest("tiny");
  AddTexts(request, "text", {1});
  request.add_raw_input_contents(RawTexts({"hello"}));
  ExpectRefused(
      request,
      "hidden_states: expected exactly one of hidden_states, input_ids, features and text; "
      "got 2");
  request = InferRequest();
  request.set_model_name("tiny");
  AddTexts(request, "text", {1});
  request.mutable_inputs(0)->mutable_contents()->add_int_contents(7);
  ExpectRefused(request, "text.contents: expected bytes_contents; got numbers");
}

// Of NAME.text.
TEST_F(InferTextsTest, HaveANameOfTheirOwn) {
  InferRequest request = RawRequest({"hello", "hello world"});
  const InferResponse expected = Call(request);
  request.set_model_name("tiny.text");
  const InferResponse response = Call(request);
  EXPECT_EQ(response.model_name(), "tiny.text");
  EXPECT_EQ(response.outputs_size(), expected.outputs_size());
  EXPECT_EQ(response.raw_output_contents(0), expected.raw_output_contents(0));
  EXPECT_EQ(response.raw_output_contents(1), expected.raw_output_contents(1));
  AddTexts(request, "text_pair", {2});
  request.add_raw_input_contents(RawTexts({"world", "good"}));
  InferRequest pairs = request;
  pairs.set_model_name("tiny");
  EXPECT_EQ(Call(request).raw_output_contents(1), Call(pairs).raw_output_contents(1));
  request = IdsRequest("tiny.text");
  ExpectRefused(request, "inputs: expected one of text, text_pair; got \"input_ids\"");
  request = InferRequest();
  request.set_model_name("tiny.text");
  ExpectRefused(request, "inputs: expected an input text (model tiny.text requires it); got none");
  request = RawRequest({"hello"});
  request.set_model_name("tiny.text");
  Ask(request, {"context_layer"});
  ExpectRefused(request,
                "\"context_layer\" not supported by model \"tiny.text\": its inputs are not hidden "
                "states; use model tiny.hidden");
  request.set_model_name("bare.text");
  ExpectRefused(request,
                "model_name: \"bare.text\" not supported by model \"bare\": it was not loaded from "
                "a directory with a tokenizer");
}

// Clients that fill all inputs of the metadata, such as perf_analyzer, send either ids or texts.
TEST_F(InferTextsTest, AreInTheMetadataOfTheirName) {
  const auto stub = inference::GRPCInferenceService::NewStub(server_->channel());
  const auto inputs = [&](const std::string& name) {
    inference::ModelMetadataRequest request;
    request.set_name(name);
    inference::ModelMetadataResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->ModelMetadata(&context, request, &response).ok());
    std::vector<std::string> names;
    for (const auto& input : response.inputs()) {
      names.push_back(input.name());
      if (input.datatype() == "BYTES") {
        EXPECT_THAT(input.shape(), ElementsAre(-1, 1));
      }
    }
    return names;
  };
  EXPECT_THAT(inputs("tiny"), ElementsAre("input_ids", "attention_mask", "token_type_ids"));
  EXPECT_THAT(inputs("tiny.text"), ElementsAre("text"));
  EXPECT_THAT(inputs("counting.text"), ElementsAre("text", "text_pair"));  // has classes
  grpc::ClientContext context, other;
  inference::ModelConfigRequest of;
  of.set_name("counting.text");
  inference::ModelConfigResponse config;
  ASSERT_TRUE(stub->ModelConfig(&context, of, &config).ok());
  EXPECT_EQ(config.config().input(0).data_type(), inference::TYPE_STRING);
  EXPECT_FALSE(config.config().input(0).optional());
  EXPECT_THAT(config.config().input(1).dims(), ElementsAre(1));
  EXPECT_TRUE(config.config().input(1).optional());
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(stub->RepositoryIndex(&other, inference::RepositoryIndexRequest(), &index).ok());
  std::vector<std::string> names;
  for (const auto& model : index.models()) names.push_back(model.name());
  EXPECT_THAT(names, testing::IsSupersetOf({"tiny", "tiny.text", "tiny.hidden"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("bare.text")));
}

}  // namespace infer_texts_test
}  // namespace attendant::server
