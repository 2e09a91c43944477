// Tests of inference over HTTP, whose answers are those of ModelInfer over gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/inference/infer_requests.h"
#include "tests/server/rest/rest_fixture.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace rest_infer_test {

using ::testing::HasSubstr;

class RestInferTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { rest_ = new RestFixture(); }
  static void TearDownTestSuite() { delete rest_; }

  static InferResponse OverGrpc(const InferRequest& request) {
    InferResponse response;
    const grpc::Status status = attendant::server::Infer(rest_->server(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static Json Call(const std::string& model, const Json& body) {
    const RestResult result = rest_->Infer(model, body);
    EXPECT_EQ(result.status, 200) << result.body;
    EXPECT_EQ(result.header("content-type"), "application/json");
    return result.json();
  }

  inline static RestFixture* rest_ = nullptr;
};

// The elements of an output in JSON, as float32.
std::vector<float> DataOf(const Json& answer, size_t output) {
  return answer["outputs"][output]["data"].get<std::vector<float>>();
}

TEST_F(RestInferTest, AnswersWithTheBitsOfGrpc) {
  const Json answer = Call("tiny", IdsBody());
  const InferResponse expected = OverGrpc(IdsRequest("tiny"));
  EXPECT_EQ(answer["model_name"], "tiny");
  EXPECT_EQ(answer["model_version"], "1");
  EXPECT_EQ(answer["id"], "some id");
  ASSERT_EQ(answer["outputs"].size(), 2u);
  EXPECT_EQ(answer["outputs"][0]["name"], "last_hidden_state");
  EXPECT_EQ(answer["outputs"][0]["datatype"], "FP32");
  EXPECT_EQ(answer["outputs"][0]["shape"], Json({2, 4, 32}));
  EXPECT_EQ(RawOf(DataOf(answer, 0)), expected.raw_output_contents(0));
  EXPECT_EQ(answer["outputs"][1]["name"], "sentence_embedding");
  EXPECT_EQ(answer["outputs"][1]["shape"], Json({2, 32}));
  EXPECT_EQ(RawOf(DataOf(answer, 1)), expected.raw_output_contents(1));
}

TEST_F(RestInferTest, FlatAndNestedDataAreTheSame) {
  Json nested = IdsBody();
  nested["inputs"][0]["data"] = Json::parse("[[11, 48, 85, 22], [59, 7, 33, 0]]");
  EXPECT_EQ(Call("tiny", nested), Call("tiny", IdsBody()));
}

TEST_F(RestInferTest, TheOrderOfKeysIsFree) {
  const RestResult result = rest_->Post("/v2/models/tiny/infer", R"({"outputs": [
    {"parameters": {"binary_data": false}, "name": "sentence_embedding"}], "unknown": [{"x": [1]}],
    "inputs": [{"data": [5, 6], "shape": [1, 2], "more": {}, "datatype": "INT32", "name": "input_ids"}]})");
  ASSERT_EQ(result.status, 200) << result.body;
  InferRequest request;
  request.set_model_name("tiny");
  AddRaw(request, "input_ids", "INT32", {1, 2}, std::vector<int32_t>{5, 6});
  Ask(request, {"sentence_embedding"});
  EXPECT_EQ(RawOf(DataOf(result.json(), 0)), OverGrpc(request).raw_output_contents(0));
  EXPECT_FALSE(result.json().contains("id"));
}

TEST_F(RestInferTest, GivesOnlyTheOutputsAskedFor) {
  Json body = IdsBody();
  body["outputs"] = Json::parse(R"([{"name": "attentions.1"}, {"name": "hidden_states.1"}])");
  InferRequest request = IdsRequest("tiny");
  Ask(request, {"attentions.1", "hidden_states.1"});
  const Json answer = Call("tiny", body);
  const InferResponse expected = OverGrpc(request);
  ASSERT_EQ(answer["outputs"].size(), 2u);
  for (int i : {0, 1}) {
    EXPECT_EQ(RawOf(DataOf(answer, static_cast<size_t>(i))), expected.raw_output_contents(i));
  }
}

TEST_F(RestInferTest, TakesAllDatatypesThatJsonHas) {
  const Json expected = Call("tiny", IdsBody());
  for (const char* type :
       {"INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"}) {
    Json body = IdsBody();
    body["inputs"][0]["datatype"] = body["inputs"][1]["datatype"] = type;
    EXPECT_EQ(Call("tiny", body), expected) << type;
  }
  Json body = IdsBody();
  body["inputs"][1]["datatype"] = "BOOL";
  body["inputs"][1]["data"] = {true, true, true, true, true, true, false, false};
  EXPECT_EQ(Call("tiny", body), expected);
}

// As KServe's and MLServer's clients write what is not set.
TEST_F(RestInferTest, ANullIsAbsent) {
  Json body = IdsBody();
  const Json expected = Call("tiny", body);
  body["parameters"] = nullptr;
  body["outputs"] = nullptr;
  for (Json& input : body["inputs"]) input["parameters"] = nullptr;
  body["inputs"][1]["unknown"] = nullptr;
  EXPECT_EQ(Call("tiny", body), expected);
  body["parameters"] = Json::parse(R"({"timeout": null, "stage": null, "normalize": null,
    "output_datatype": null, "binary_data_output": null, "priority": null, "unknown": null})");
  body["inputs"][0]["parameters"] =
      Json::parse(R"({"binary_data_size": null, "shared_memory_region": null})");
  body["outputs"] = Json::parse(R"([
    {"name": "last_hidden_state", "parameters": {"binary_data": null, "classification": null}},
    {"name": "sentence_embedding", "parameters": null}])");
  EXPECT_EQ(Call("tiny", body), expected);
  body["id"] = nullptr;
  EXPECT_FALSE(Call("tiny", body).contains("id"));
}

// MLServer adds the headers of its caller.
TEST_F(RestInferTest, IgnoresUnknownParametersOfAnyKind) {
  Json body = IdsBody();
  const Json expected = Call("tiny", body);
  const Json unknown = Json::parse(R"({"headers": {"x-a": "b", "parameters": {"timeout": "x"}},
    "list": [1, [2, {"y": null}]], "content_type": "np", "number": 1e300, "flag": true})");
  body["parameters"] = body["inputs"][0]["parameters"] = unknown;
  body["outputs"] =
      Json::parse(R"([{"name": "last_hidden_state"}, {"name": "sentence_embedding"}])");
  body["outputs"][1]["parameters"] = unknown;
  EXPECT_EQ(Call("tiny", body), expected);
}

// As Gson writes all numbers.
TEST_F(RestInferTest, AWholeFloatIsAnInteger) {
  Json body = IdsBody();
  const Json expected = Call("tiny", body);
  for (Json& input : body["inputs"]) {
    input["shape"] = {2.0, 4.0};
    input["data"] = input["data"].flatten();
    std::vector<double> elements;
    for (const Json& element : input["data"]) elements.push_back(element.get<double>());
    input["data"] = elements;
  }
  body["parameters"] = {{"timeout", 60000000.0}, {"layer_count", 2.0}};
  ASSERT_NE(body.dump().find("11.0"), std::string::npos) << body.dump();
  EXPECT_EQ(Call("tiny", body), expected);
}

TEST_F(RestInferTest, ZeroAndOneAreFlags) {
  Json body = IdsBody();
  body["parameters"] = {{"normalize", true}};
  const Json expected = Call("tiny", body);
  body["parameters"] = {{"normalize", 1}, {"truncate", 0}, {"binary_data_output", 0}};
  body["inputs"][1]["datatype"] = "BOOL";
  EXPECT_EQ(Call("tiny", body), expected);
  body["inputs"][1]["data"] = Json::parse("[1.0, 1, true, 1, 1, 1, 0.0, false]");
  EXPECT_EQ(Call("tiny", body), expected);
}

TEST_F(RestInferTest, ParametersAreThoseOfGrpc) {
  const std::vector<float> rows = SomeValues(96, 1);
  Json body = {{"parameters", {{"stage", "projected"}, {"layer", 1}, {"timeout", 60000000}}}};
  body["inputs"] = Json::array();
  body["inputs"].push_back({{"name", "hidden_states"}, {"datatype", "FP32"}});
  body["inputs"][0]["shape"] = {1, 3, 32};
  body["inputs"][0]["data"] = rows;
  InferRequest request;
  request.set_model_name("tiny.hidden");
  AddRaw(request, "hidden_states", "FP32", {1, 3, 32}, rows);
  (*request.mutable_parameters())["stage"].set_string_param("projected");
  (*request.mutable_parameters())["layer"].set_int64_param(1);
  EXPECT_EQ(RawOf(DataOf(Call("tiny.hidden", body), 0)), OverGrpc(request).raw_output_contents(0));
}

TEST_F(RestInferTest, AnInfiniteElementIsNull) {
  Json body = {{"inputs", Json::array()}};
  body["outputs"] = Json::parse(R"([{"name": "context_layer"}])");
  body["inputs"].push_back({{"name", "hidden_states"}, {"datatype", "FP32"}});
  body["inputs"][0]["shape"] = {1, 1, 4};
  body["inputs"][0]["parameters"] = {{"binary_data_size", 16}};
  const float infinity = std::numeric_limits<float>::infinity();
  const std::string json = body.dump(), rows = RawOf(std::vector<float>(4, infinity));
  const RestResult result =
      rest_->Post("/v2/models/bare/infer", json + rows,
                  absl::StrCat("Inference-Header-Content-Length: ", json.size(), "\r\n"));
  ASSERT_EQ(result.status, 200) << result.body;
  EXPECT_TRUE(result.json()["outputs"][0]["data"][0].is_null()) << result.body;
}

// As tritonclient.http sends and reads tensors.
TEST_F(RestInferTest, BinaryTensorsGoBehindTheJson) {
  Json body = IdsBody();
  const std::string ids = RawOf(SomeIds()), mask = RawOf(SomeMask());
  for (auto& input : body["inputs"]) {
    input.erase("data");
    input["parameters"]["binary_data_size"] = 64;
  }
  body["outputs"] =
      Json::parse(R"([{"name": "last_hidden_state", "parameters": {"binary_data": true}},
                                    {"name": "sentence_embedding", "parameters": {"binary_data": false}},
                                    {"name": "attentions.0", "parameters": {"binary_data": true}}])");
  const std::string json = body.dump();
  const RestResult result =
      rest_->Post("/v2/models/tiny/versions/1/infer", json + ids + mask,
                  absl::StrCat("Inference-Header-Content-Length: ", json.size(), "\r\n"));
  ASSERT_EQ(result.status, 200) << result.body;
  EXPECT_EQ(result.header("content-type"), "application/octet-stream");
  const size_t head = std::stoul(result.header("inference-header-content-length"));
  const Json answer = Json::parse(result.body.substr(0, head));
  InferRequest request = IdsRequest("tiny");
  Ask(request, {"last_hidden_state", "sentence_embedding", "attentions.0"});
  const InferResponse expected = OverGrpc(request);
  EXPECT_EQ(RawOf(DataOf(answer, 1)), expected.raw_output_contents(1));
  const size_t first = expected.raw_output_contents(0).size();
  EXPECT_EQ(answer["outputs"][0]["parameters"]["binary_data_size"], first);
  EXPECT_EQ(result.body.substr(head, first), expected.raw_output_contents(0));
  EXPECT_EQ(result.body.substr(head + first), expected.raw_output_contents(2));
}

TEST_F(RestInferTest, HalvesGoAsBinary) {
  Json body = IdsBody();
  body["parameters"] = {{"output_datatype", "FP16"}, {"binary_data_output", true}};
  const RestResult result = rest_->Infer("tiny", body);
  ASSERT_EQ(result.status, 200) << result.body;
  const size_t head = std::stoul(result.header("inference-header-content-length"));
  InferRequest request = IdsRequest("tiny");
  (*request.mutable_parameters())["output_datatype"].set_string_param("FP16");
  const InferResponse expected = OverGrpc(request);
  EXPECT_EQ(result.body.substr(head),
            expected.raw_output_contents(0) + expected.raw_output_contents(1));
}

TEST_F(RestInferTest, AChunkedBodyIsTaken) {
  const std::string body = IdsBody().dump(), rest = body.substr(50);
  const RestResult result = rest_->Call(absl::StrCat(
      "POST /v2/models/tiny/infer HTTP/1.1\r\nHost: x\r\n"
      "Transfer-Encoding: chunked\r\n\r\n32\r\n",
      body.substr(0, 50), "\r\n", absl::Hex(rest.size()), "\r\n", rest, "\r\n0\r\n\r\n"));
  ASSERT_EQ(result.status, 200) << result.body;
  EXPECT_EQ(result.json(), Call("tiny", IdsBody()));
}

TEST_F(RestInferTest, ACallerWhoAsksFirstIsToldToGoOn) {
  TcpClient client(rest_->port());
  const std::string body = IdsBody().dump();
  ASSERT_TRUE(
      client.Send(PostHead("/v2/models/tiny/infer", body.size(), "Expect: 100-continue\r\n")));
  ASSERT_TRUE(client.AwaitInput(60'000));
  ASSERT_TRUE(client.Send(body));
  EXPECT_THAT(client.ReceiveAnswer(),
              testing::StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"));
}

TEST_F(RestInferTest, ATraceIsGivenBack) {
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const RestResult result = rest_->Post("/v2/models/tiny/infer", IdsBody().dump(),
                                        absl::StrCat("traceparent: ", trace, "\r\n"));
  EXPECT_EQ(result.header("traceparent"), trace);
}

TEST_F(RestInferTest, IsCountedAsOverGrpc) {
  const RestResult before = rest_->Get("/v2/models/counting/stats");
  Json body = IdsBody();
  body["outputs"] = Json::parse(R"([{"name": "logits"}])");
  Call("counting", body);
  rest_->server().ExpectMetrics(HasSubstr(
      "attendant_requests_total{code=\"OK\",method=\"ModelInfer\",model=\"counting\"} 1\n"));
  const Json stats = rest_->Get("/v2/models/counting/stats").json()["model_stats"][0];
  EXPECT_EQ(stats["inference_stats"]["success"]["count"], 1);
  EXPECT_EQ(stats["inference_count"], 2);
  EXPECT_EQ(before.json()["model_stats"][0]["inference_count"], 0);
}

}  // namespace rest_infer_test
}  // namespace attendant::server
