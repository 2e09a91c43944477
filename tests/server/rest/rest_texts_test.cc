// Tests of texts in the Open Inference Protocol over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rest/rest_fixture.h"
#include "tests/server/support/text_models.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace rest_texts_test {

using ::testing::HasSubstr;

class RestTextsTest : public ::testing::Test {
 protected:
  static TestServerOptions Serving() {
    TestServerOptions options;
    options.models = TextModels();
    return options;
  }
  static void SetUpTestSuite() { rest_ = new RestFixture(Serving()); }
  static void TearDownTestSuite() { delete rest_; }

  static Json Body(const Json& data, const Json& shape) {
    return {
        {"inputs", {{{"name", "text"}, {"shape", shape}, {"datatype", "BYTES"}, {"data", data}}}},
        {"outputs", {{{"name", "sentence_embedding"}}}}};
  }

  // nlohmann orders the keys by name, so that data comes before shape and datatype.
  static std::vector<float> Call(const Json& body) {
    const RestResult result = rest_->Infer("tiny", body);
    EXPECT_EQ(result.status, 200) << result.body;
    return result.json()["outputs"][0]["data"].get<std::vector<float>>();
  }

  static std::vector<float> Expected(const std::vector<std::string>& texts) {
    v1::EncodeRequest request;
    request.set_model("tiny");
    for (const std::string& text : texts) request.add_texts(text);
    request.set_return_pooled(true);
    request.set_truncation(v1::TRUNCATE_RIGHT);
    v1::EncodeResponse response;
    EXPECT_TRUE(rest_->server().Encode(request, &response).ok());
    return ToFloats(response.pooled());
  }

  inline static RestFixture* rest_ = nullptr;
};

TEST_F(RestTextsTest, AreThoseOfEncode) {
  EXPECT_EQ(Call(Body({"hello", "hello world"}, {2})), Expected({"hello", "hello world"}));
  const Json column = Json::parse(R"([["hello"], ["caf\u00e9"]])");
  EXPECT_EQ(Call(Body(column, {2, 1})), Expected({"hello", "caf\u00e9"}));
}

TEST_F(RestTextsTest, MayBeLongIfTheirTypeComesFirst) {
  std::string text;
  while (text.size() < 50'000) text += "hello ";
  const std::string head = R"({"parameters": {"truncate": true}, "inputs": [{"name": "text",)";
  const std::string data = absl::StrCat(R"("data": [")", text, R"("])");
  const std::string type = R"("shape": [1], "datatype": "BYTES")";
  const std::string tail = R"(}], "outputs": [{"name": "sentence_embedding"}]})";
  const char* path = "/v2/models/tiny/infer";
  RestResult result = rest_->Post(path, absl::StrCat(head, type, ",", data, tail));
  ASSERT_EQ(result.status, 200) << result.body;
  EXPECT_EQ(result.json()["outputs"][0]["data"].get<std::vector<float>>(), Expected({text}));
  result = rest_->Post(path, absl::StrCat(head, data, ",", type, tail));
  EXPECT_EQ(result.status, 400);
  EXPECT_THAT(result.error(), HasSubstr("strings and numbers of at most 4096 bytes"));
  result =
      rest_->Post(path, absl::StrCat(head, type, ",", data, ", \"more\": \"", text, "\"", tail));
  EXPECT_EQ(result.status, 400);
  EXPECT_THAT(result.error(), HasSubstr("strings and numbers of at most 4096 bytes"));
}

TEST_F(RestTextsTest, AreBinaryToo) {
  const std::string raw("\5\0\0\0hello", 9);
  const std::string json = absl::StrCat(
      R"({"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "parameters":)",
      R"({"binary_data_size": 9}}], "outputs": [{"name": "sentence_embedding"}]})");
  const RestResult result =
      rest_->Post("/v2/models/tiny/infer", json + raw,
                  absl::StrCat("Inference-Header-Content-Length: ", json.size(), "\r\n"));
  ASSERT_EQ(result.status, 200) << result.body;
  EXPECT_EQ(result.json()["outputs"][0]["data"].get<std::vector<float>>(), Expected({"hello"}));
}

TEST(RestTextRoomTest, MemoryIsChargedBeforeTextsAreTokenized) {
  TestServerOptions options;
  options.models = TextModels();
  options.admission.memory = {int64_t{4} << 20};
  RestFixture rest(options);
  const std::string body =
      absl::StrCat(R"({"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [")",
                   std::string(50'000, 'x'), "\"]}]}");
  const RestResult result = rest.Post("/v2/models/tiny/infer", body);
  EXPECT_EQ(result.status, 400);
  EXPECT_THAT(result.error(), HasSubstr("bytes with its response; the server has 4194304"));
}

TEST_F(RestTextsTest, AreRefusedByName) {
  const auto expect_refused = [](const Json& body, const std::string& message) {
    const RestResult result = rest_->Infer("tiny", body);
    EXPECT_EQ(result.status, 400);
    EXPECT_THAT(result.error(), HasSubstr(message));
  };
  expect_refused(Body({"a", 7}, {2}), "inputs[0].data[1]: expected a string; got 7");
  expect_refused(Body({"a"}, {2}),
                 "inputs[0]: expected data with as many elements as shape [2]; got 1");
  expect_refused(Body(std::vector<std::string>(1025, ""), {1025}),
                 "expected at most 1024 strings; got more");
  const RestResult result = rest_->Post(
      "/v2/models/tiny/infer",
      R"({"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["\ud800"]}]})");
  EXPECT_EQ(result.status, 400);
  EXPECT_THAT(result.error(), HasSubstr("half a surrogate pair"));
}

}  // namespace rest_texts_test
}  // namespace attendant::server
