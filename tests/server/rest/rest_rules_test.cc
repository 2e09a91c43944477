// Tests of what is refused over HTTP: the status, the code's number and the message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "tests/server/rest/rest_fixture.h"

namespace attendant::server {
namespace rest_rules_test {

struct RestRule {
  const char* name;
  std::function<std::string()> body;
  std::string error;
  int status = 400;
  const char* model = "tiny";
  std::string headers = {};
};

void PrintTo(const RestRule& rule, std::ostream* out) { *out << rule.name; }

// The valid body, with one change.
std::function<std::string()> Spoiled(std::function<void(Json&)> spoil) {
  return [spoil] {
    Json body = IdsBody();
    spoil(body);
    return body.dump();
  };
}

std::function<std::string()> Text(const std::string& text) {
  return [text] { return text; };
}

class RestRulesTest : public ::testing::TestWithParam<RestRule> {
 protected:
  static void SetUpTestSuite() { rest_ = new RestFixture(); }
  static void TearDownTestSuite() { delete rest_; }
  inline static RestFixture* rest_ = nullptr;
};

TEST_P(RestRulesTest, IsRefused) {
  const RestRule& rule = GetParam();
  const RestResult result =
      rest_->Post(absl::StrCat("/v2/models/", rule.model, "/infer"), rule.body(), rule.headers);
  EXPECT_EQ(result.status, rule.status);
  EXPECT_THAT(result.error(), testing::StartsWith(rule.error));
  EXPECT_EQ(result.header("content-type"), "application/json");
}

const RestRule kJsonRules[] = {
    {"Empty", Text(""), "the body: expected strict JSON in UTF-8; got something else at byte 1"},
    {"NoObject", Text("[1]"), "the body: expected a JSON object; got a list"},
    {"AText", Text("\"x\""), "the body: expected a JSON object; got \"x\""},
    {"CutOff", Text("{\"inputs\": ["),
     "the body: expected strict JSON in UTF-8; got something else at byte 13"},
    {"Behind", Text("{} x"),
     "the body: expected strict JSON in UTF-8; got something else at byte 4"},
    {"NotUtf8", Text("{\"id\": \"\xff\"}"),
     "the body: expected strict JSON in UTF-8; got something else at byte 9"},
    {"HalfASurrogatePair", Text(R"({"id": "\ud83d"})"),
     "the body: expected strings of Unicode characters; got half a surrogate pair at byte 15"},
    {"TheOtherHalf", Text(R"({"id": "\ude00"})"),
     "the body: expected strings of Unicode characters; got half a surrogate pair at byte 14"},
    {"NaN", Text("{\"id\": NaN}"),
     "the body: expected strict JSON in UTF-8; got something else at byte 8"},
    {"KeyTwice", Text("{\"id\": \"a\", \"\\u0069d\": \"b\"}"),
     "the body: expected each key once; got \"id\" twice"},
    {"KeyOfInputTwice", Text("{\"inputs\": [{\"data\": [1], \"data\": [2]}]}"),
     "inputs[0]: expected each key once; got \"data\" twice"},
    {"ManyKeys",
     [] {
       Json body;
       for (int i = 0; i < 65; ++i) body[absl::StrCat("k", i)] = 1;
       return body.dump();
     },
     "the body: expected at most 64 keys; got more"},
    {"Deep", [] { return "{\"x\":" + std::string(100000, '[') + std::string(100000, ']') + "}"; },
     "the body: expected at most 32 nested lists and objects; got more"},
    {"LongText", [] { return "{\"id\": \"" + std::string(5000, 'x') + "\"}"; },
     "the body: expected strings and numbers of at most 4096 bytes; got more"},
    {"LongNumber", [] { return "{\"id\": 1" + std::string(5000, '0') + "}"; },
     "the body: expected strings and numbers of at most 4096 bytes; got more"},
    {"HugeFloat", Text("{\"inputs\": [{\"data\": [1e999]}]}"),
     "inputs[0].data: expected numbers in the range of float64; got a larger number at byte 27"},
    {"InputsNoList", Text("{\"inputs\": {}}"), "inputs: expected a list; got an object"},
    {"InputNoObject", Text("{\"inputs\": [3]}"), "inputs[0]: expected an object; got 3"},
    {"NameNoText", Text("{\"inputs\": [{\"name\": 3}]}"),
     "inputs[0].name: expected a string; got 3"},
    {"NameAList", Text("{\"inputs\": [{\"name\": []}]}"),
     "inputs[0].name: expected a string or number; got a list"},
    {"IdNoText", Spoiled([](Json& body) { body["id"] = 3; }), "id: expected a string; got 3"},
    {"DataNoList", Text("{\"inputs\": [{\"data\": 1}]}"), "inputs[0].data: expected a list; got 1"},
    {"ObjectInData", Text("{\"inputs\": [{\"data\": [{}]}]}"),
     "inputs[0].data[0]: expected a list; got an object"},
    {"TimeoutAnObject", Spoiled([](Json& body) { body["parameters"]["timeout"] = Json::object(); }),
     "parameters.timeout: expected an int64; got a list or an object"},
    {"NormalizeAList", Spoiled([](Json& body) { body["parameters"]["normalize"] = {1}; }),
     "parameters.normalize: expected a bool; got a list or an object"},
    {"StageAList", Spoiled([](Json& body) { body["parameters"]["stage"] = {"block"}; }),
     "parameters.stage: expected a string; got a list or an object"},
    {"BinaryOutputAList",
     Spoiled([](Json& body) { body["parameters"]["binary_data_output"] = {true}; }),
     "parameters.binary_data_output: expected true or false; got a list or an object"},
    {"NullAsInput", Text("{\"inputs\": [null]}"), "inputs[0]: expected an object; got null"},
};

const RestRule kTensorRules[] = {
    {"NoInputs", Text("{}"),
     "inputs: expected an input input_ids (model tiny requires it); got none"},
    {"ShapeNegative", Spoiled([](Json& body) { body["inputs"][0]["shape"][0] = -2; }),
     "inputs[0].shape[0]: expected a whole number, 0 or more; got -2"},
    {"ShapeHuge", Spoiled([](Json& body) {
       body["inputs"][0]["shape"] = {int64_t{1} << 62, int64_t{1} << 62};
     }),
     "inputs[0]: expected data with as many elements as shape [4611686018427387904, "
     "4611686018427387904]; got 8"},
    {"ShapeOfManyDimensions",
     Spoiled([](Json& body) { body["inputs"][0]["shape"] = std::vector<int>(17, 1); }),
     "inputs[0].shape[16]: expected at most 16 dimensions; got more"},
    {"FewElements", Spoiled([](Json& body) { body["inputs"][0]["data"].erase(0); }),
     "inputs[0]: expected data with as many elements as shape [2, 4]; got 7"},
    {"Ragged", Spoiled([](Json& body) {
       body["inputs"][0]["data"] = Json::parse("[[1, 2, 3], [4, 5, 6, 7, 8]]");
     }),
     "inputs[0]: expected data as a flat list, or nested by shape [2, 4]; got another nesting"},
    {"NestedOtherwise", Spoiled([](Json& body) {
       body["inputs"][0]["data"] = Json::parse("[[1, 2], [3, 4], [5, 6], [7, 8]]");
     }),
     "inputs[0]: expected data as a flat list, or nested by shape [2, 4]; got another nesting"},
    {"Uneven", Spoiled([](Json& body) {
       body["inputs"][0]["data"] = Json::parse("[1, 2, 3, 4, 5, 6, 7, [8]]");
     }),
     "inputs[0]: expected data as a flat list, or nested by shape [2, 4]; got another nesting"},
    {"AFraction", Spoiled([](Json& body) { body["inputs"][0]["data"][5] = 3.5; }),
     "inputs[0].data[5]: expected a value of INT64; got 3.5"},
    {"TooLargeForItsType", Spoiled([](Json& body) {
       body["inputs"][0]["datatype"] = "INT8";
       body["inputs"][0]["data"][5] = 128;
     }),
     "inputs[0].data[5]: expected a value of INT8; got 128"},
    {"NegativeUnsigned", Spoiled([](Json& body) {
       body["inputs"][0]["datatype"] = "UINT64";
       body["inputs"][0]["data"][0] = -1;
     }),
     "inputs[0].data[0]: expected a value of UINT64; got -1"},
    {"ATextAsElement", Spoiled([](Json& body) { body["inputs"][0]["data"][1] = "7"; }),
     "inputs[0].data[1]: expected a value of INT64; got \"7\""},
    {"ANullAsElement", Spoiled([](Json& body) { body["inputs"][0]["data"][1] = nullptr; }),
     "inputs[0].data[1]: expected a value of INT64; got null"},
    {"ANullAsDimension", Spoiled([](Json& body) { body["inputs"][0]["shape"][1] = nullptr; }),
     "inputs[0].shape[1]: expected a whole number, 0 or more; got null"},
    {"NoDataButNull", Spoiled([](Json& body) { body["inputs"][0]["data"] = nullptr; }),
     "inputs[0]: expected either data or the parameter binary_data_size; got neither"},
    {"AFlagAsNumber", Spoiled([](Json& body) { body["inputs"][0]["data"][1] = true; }),
     "inputs[0].data[1]: expected a value of INT64; got true"},
    {"NoInteger", Spoiled([](Json& body) { body["inputs"][0]["data"][0] = 9007199254740992.0; }),
     "inputs[0].data[0]: expected a value of INT64; got 9.0072e+15"},
    {"TooLargeForItsTypeWithAPoint", Spoiled([](Json& body) {
       body["inputs"][0]["datatype"] = "UINT8";
       body["inputs"][0]["data"][5] = 256.0;
     }),
     "inputs[0].data[5]: expected a value of UINT8; got 256"},
    {"NumbersAsFlags", Spoiled([](Json& body) {
       body["inputs"][1]["datatype"] = "BOOL";
       body["inputs"][1]["data"][0][2] = 2;
     }),
     "inputs[1].data[0][2]: expected a value of BOOL; got 2"},
    {"AFloatBeyondFp32", Text(R"({"inputs": [{"name": "hidden_states", "datatype": "FP32",
      "shape": [1], "data": [1e39]}]})"),
     "inputs[0].data[0]: expected a value of FP32; got 1e+39"},
    {"HalvesInJson", Text(R"({"inputs": [{"name": "hidden_states", "datatype": "FP16",
      "shape": [1], "data": [1]}]})"),
     "inputs[0].data: expected the parameter binary_data_size (JSON has no FP16); got data"},
    {"Bytes", Text(R"({"inputs": [{"name": "input_ids", "datatype": "BYTES",
      "shape": [1], "data": ["some text"]}]})"),
     "input_ids.datatype: expected one of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, "
     "INT64, FP16, FP32, BF16; got \"BYTES\"; this model does not accept texts"},
    {"NoData", Spoiled([](Json& body) { body["inputs"][0].erase("data"); }),
     "inputs[0]: expected either data or the parameter binary_data_size; got neither"},
    {"DataInBothPlaces",
     Spoiled([](Json& body) { body["inputs"][0]["parameters"]["binary_data_size"] = 64; }),
     "inputs[0]: expected either data or the parameter binary_data_size; got both"},
    {"SharedMemory", Spoiled([](Json& body) {
       body["inputs"][0].erase("data");
       body["inputs"][0]["parameters"]["shared_memory_region"] = "r";
     }),
     "input_ids.parameters.shared_memory_region: not supported; send the data"},
    {"TheSameInputTwice", Spoiled([](Json& body) { body["inputs"][1] = body["inputs"][0]; }),
     "inputs: expected each name once; got input_ids twice"},
    {"UnknownOutput", Spoiled([](Json& body) { body["outputs"][0]["name"] = "logits"; }),
     "outputs: expected one of last_hidden_state, sentence_embedding, token_embeddings, "
     "hidden_states.N with N in 1..2, attentions.N with N in 0..1; got \"logits\""},
    {"HalvesAsJson", Spoiled([](Json& body) { body["parameters"]["output_datatype"] = "BF16"; }),
     "parameters.output_datatype: expected FP32 (outputs in JSON); got BF16; request binary_data"},
};

const RestRule kBinaryRules[] = {
    {"TooLittleBehind", Spoiled([](Json& body) {
       body["inputs"][0].erase("data");
       body["inputs"][0]["parameters"]["binary_data_size"] = 64;
     }),
     "input_ids.parameters.binary_data_size: expected at most 0 (the bytes left after the JSON); "
     "got 64"},
    {"TooMuchBehind", Text("{}xyz"),
     "the body: expected 0 bytes after the JSON (the inputs' binary_data_size); got 3", 400, "tiny",
     "Inference-Header-Content-Length: 2\r\n"},
    {"SizeNoNumber",
     Spoiled([](Json& body) { body["inputs"][0]["parameters"]["binary_data_size"] = -1; }),
     "inputs[0].parameters.binary_data_size: expected a number of bytes; got -1"},
    {"BinaryDataNoFlag", Spoiled([](Json& body) {
       body["outputs"][0] = {{"name", "x"}, {"parameters", {{"binary_data", 2}}}};
     }),
     "outputs[0].parameters.binary_data: expected true or false; got 2"},
    {"SizeAnObject", Spoiled([](Json& body) {
       body["inputs"][0]["parameters"]["binary_data_size"] = Json::object();
     }),
     "inputs[0].parameters.binary_data_size: expected a number of bytes; got a list or an object"},
    {"SizeAFraction",
     Spoiled([](Json& body) { body["inputs"][0]["parameters"]["binary_data_size"] = 64.5; }),
     "inputs[0].parameters.binary_data_size: expected a number of bytes; got 64.5"},
    {"JsonLongerThanTheBody", Text("{}"),
     "Inference-Header-Content-Length: expected at most the 2 bytes of the body; got 3", 400,
     "tiny", "Inference-Header-Content-Length: 3\r\n"},
    {"JsonLengthNoNumber", Text("{}"),
     "Inference-Header-Content-Length: expected at most the 2 bytes of the body; got "
     "9223372036854775807",
     400, "tiny", "Inference-Header-Content-Length: x\r\n"},
    {"Compressed", Text("{}"), "Content-Encoding: not supported; send the body uncompressed", 415,
     "tiny", "Content-Encoding: gzip\r\n"},
    {"UnknownModel", Spoiled([](Json&) {}), "model: not found (no model is named \"other\")", 404,
     "other"},
    {"UnknownVersion", Spoiled([](Json&) {}),
     "model_version: not found (model tiny has no version \"7\"); use 1", 404, "tiny/versions/7"},
    {"NoTime", Spoiled([](Json& body) { body["parameters"]["timeout"] = 1; }),
     "the deadline passed ", 504},
};

std::string NameOf(const ::testing::TestParamInfo<RestRule>& rule) { return rule.param.name; }

INSTANTIATE_TEST_SUITE_P(Json, RestRulesTest, ::testing::ValuesIn(kJsonRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Tensors, RestRulesTest, ::testing::ValuesIn(kTensorRules), NameOf);
INSTANTIATE_TEST_SUITE_P(Binary, RestRulesTest, ::testing::ValuesIn(kBinaryRules), NameOf);

}  // namespace rest_rules_test
}  // namespace attendant::server
