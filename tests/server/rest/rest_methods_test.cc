// Tests of the paths beside inference, and of who may call them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/rest/rest_server.h"
#include "tests/server/rest/rest_fixture.h"

namespace attendant::server {
namespace rest_methods_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class RestMethodsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { rest_ = new RestFixture(); }
  static void TearDownTestSuite() { delete rest_; }

  static Json Get(const std::string& path) {
    const RestResult result = rest_->Get(path);
    EXPECT_EQ(result.status, 200) << path << result.body;
    EXPECT_EQ(result.header("content-type"), "application/json");
    return result.json();
  }
  static void ExpectError(const RestResult& result, int status, const std::string& error) {
    EXPECT_EQ(result.status, status);
    EXPECT_EQ(result.error(), error);
  }

  inline static RestFixture* rest_ = nullptr;
};

TEST_F(RestMethodsTest, TellsItsHealth) {
  EXPECT_EQ(Get("/v2/health/live"), Json({{"live", true}}));
  EXPECT_EQ(Get("/v2/health/ready"), Json({{"ready", true}}));
}

TEST_F(RestMethodsTest, DescribesItself) {
  const Json answer = Get("/v2");
  EXPECT_EQ(answer["name"], "attendant");
  EXPECT_THAT(answer["extensions"].get<std::vector<std::string>>(), Contains("binary_tensor_data"));
  EXPECT_EQ(Get("/v2/"), answer);
}

TEST_F(RestMethodsTest, DescribesAModel) {
  const Json answer = Get("/v2/models/tiny");
  EXPECT_EQ(answer["name"], "tiny");
  EXPECT_EQ(answer["versions"], Json({"1"}));
  EXPECT_EQ(answer["inputs"][0],
            Json({{"name", "input_ids"}, {"datatype", "INT64"}, {"shape", {-1, -1}}}));
  EXPECT_EQ(answer["outputs"][1]["shape"], Json({-1, 32}));
  EXPECT_EQ(Get("/v2/models/tiny/versions/1"), answer);
  EXPECT_EQ(Get("/v2/models/tiny/ready"), Json({{"name", "tiny"}, {"ready", true}}));
}

TEST_F(RestMethodsTest, GivesTheConfigurationAndTheStatistics) {
  const Json config = Get("/v2/models/tiny/config");
  EXPECT_EQ(config["max_batch_size"], 256);
  EXPECT_EQ(config["input"][0]["data_type"], "TYPE_INT64");
  EXPECT_EQ(config["input"][0]["dims"], Json({-1}));
  EXPECT_TRUE(config["dynamic_batching"].is_object());
  const Json stats = Get("/v2/models/bare/versions/1/stats");
  EXPECT_EQ(stats["model_stats"][0]["name"], "bare");
  EXPECT_EQ(stats["model_stats"][0]["inference_stats"]["fail"]["count"], 0);
  EXPECT_GT(Get("/v2/models/stats")["model_stats"].size(), 1u);
}

TEST_F(RestMethodsTest, ListsTheModels) {
  for (const std::string body : {"", "{}", "{\"ready\": true}", "{\"ready\": null}"}) {
    const RestResult result = rest_->Post("/v2/repository/index", body);
    ASSERT_EQ(result.status, 200) << result.body;
    EXPECT_THAT(
        result.json(),
        Contains(
            Json({{"name", "tiny.hidden"}, {"version", "1"}, {"state", "READY"}, {"reason", ""}})));
  }
  ExpectError(rest_->Post("/v2/repository/index", "[]"), 400,
              "the body: expected a JSON object; got something else");
  ExpectError(rest_->Post("/v2/repository/index", "{\"ready\": 1}"), 400,
              "ready: expected true or false; got something else");
  ExpectError(rest_->Post("/v2/repository/index", std::string(100000, ' ')), 413,
              "the body: expected less than 64 KiB; got more");
}

TEST_F(RestMethodsTest, HasNoSharedMemory) {
  EXPECT_EQ(Get("/v2/systemsharedmemory/status"), Json::array());
  EXPECT_EQ(Get("/v2/cudasharedmemory/region/r/status"), Json::array());
  EXPECT_EQ(rest_->Post("/v2/cudasharedmemory/unregister", "").status, 200);
  ExpectError(rest_->Post("/v2/systemsharedmemory/region/r/register", "{}"), 501,
              "shared memory is not supported; send tensors as raw_input_contents");
}

TEST_F(RestMethodsTest, RefusesWhatTheServerDoesNotDo) {
  ExpectError(rest_->Post("/v2/repository/models/tiny/load", "{}"), 501,
              "models are loaded and unloaded by changing --model-repository, not by calls");
  EXPECT_EQ(rest_->Post("/v2/repository/models/tiny/unload", "").status, 501);
  EXPECT_EQ(rest_->Post("/v2/models/tiny/generate", "{}").status, 501);
  EXPECT_EQ(rest_->Post("/v2/models/tiny/versions/1/generate_stream", "{}").status, 501);
  EXPECT_EQ(rest_->Get("/v2/models/tiny/trace/setting").status, 501);
  EXPECT_EQ(rest_->Get("/v2/trace/setting").status, 501);
  EXPECT_EQ(rest_->Post("/v2/logging", "{}").status, 501);
}

TEST_F(RestMethodsTest, UnknownPathsAreNotFound) {
  for (const char* path : {"/v2/x", "/v2/models", "/v2/models/", "/v2/models/tiny/versions",
                           "/v2/models/tiny/infer/x", "/v2/health", "/v2/repository",
                           "/v2/systemsharedmemory/x", "/v2/repository/models/tiny/x"}) {
    const std::string error = absl::StrCat(
        "path: not found (\"", absl::StripSuffix(path, "/"),
        "\"); infer at /v2/models/NAME/infer; POST /v2/repository/index lists the models");
    ExpectError(rest_->Get(path), 404, error);
    ExpectError(rest_->Post(path, "{}"), 404, error);
  }
  EXPECT_EQ(rest_->Get("/v2x").body, "not found\n");
  ExpectError(rest_->Get("/v2/models/other"), 404,
              "model: not found (no model is named \"other\"); the models are \"bare\", "
              "\"linear\", \"mixed\", \"patches\", \"tiny\", \"counting\"");
  ExpectError(rest_->Get("/v2/models/tiny/x"), 404,
              "model: not found (no model is named \"tiny/x\"); the models are \"tiny\", "
              "\"linear\", \"mixed\", \"bare\", \"counting\", \"patches\"");
  EXPECT_EQ(rest_->Get("/v2/models/other/ready").status, 503);
}

TEST(RestNamesTest, AModelsNameMayHaveSlashesAndMoreAndBeEscaped) {
  TestServerOptions options;
  for (const char* name : {"BAAI/bge-m3", "100%\"ours\"/模型"}) {
    auto model = std::make_shared<ServedModel>(name, TestModels().at("tiny")->encoder);
    options.models[name] = model;
  }
  RestFixture rest(std::move(options));
  for (const std::string path : {"BAAI/bge-m3", "BAAI%2Fbge-m3", "BAAI%2fbge%2Dm3",
                                 "BAAI/bge-m3/versions/1", "BAAI%2Fbge-m3/versions/1"}) {
    EXPECT_EQ(rest.Get("/v2/models/" + path).json()["name"], "BAAI/bge-m3") << path;
    EXPECT_EQ(rest.Get("/v2/models/" + path + "/ready").json()["ready"], true) << path;
    EXPECT_EQ(rest.Get("/v2/models/" + path + "/config").json()["name"], "BAAI/bge-m3") << path;
    EXPECT_EQ(rest.Get("/v2/models/" + path + "/stats").json()["model_stats"][0]["name"],
              "BAAI/bge-m3")
        << path;
    const RestResult made = rest.Infer(path, IdsBody());
    EXPECT_EQ(made.status, 200) << path << made.body;
    EXPECT_EQ(made.json()["model_name"], "BAAI/bge-m3");
  }
  EXPECT_EQ(rest.Get("/v2/models/BAAI/bge-m3.hidden").json()["inputs"][0]["name"], "hidden_states");
  const std::string escaped = "100%25%22ours%22/%E6%A8%A1%E5%9E%8B";
  EXPECT_EQ(rest.Infer(escaped, IdsBody()).json()["model_name"], "100%\"ours\"/模型");
  EXPECT_EQ(rest.Post("/v2/models/BAAI/bge-m3/generate", "{}").status, 501);
  EXPECT_EQ(rest.Post("/v2/repository/models/BAAI/bge-m3/load", "{}").status, 501);
  rest.server().ExpectMetrics(
      AllOf(HasSubstr("method=\"ModelInfer\",model=\"BAAI/bge-m3\"} 5\n"),
            HasSubstr("method=\"ModelInfer\",model=\"100%\\\"ours\\\"/模型\"} 1\n")));
}

TEST_F(RestMethodsTest, OtherVerbsAreToldThoseOfThePath) {
  const RestResult result = rest_->Get("/v2/models/tiny/infer");
  ExpectError(result, 405, "expected the method POST");
  EXPECT_EQ(result.header("allow"), "POST");
  ExpectError(rest_->Post("/v2/models/tiny", "{}"), 405, "expected the method GET, HEAD");
  const RestResult head = rest_->Call("HEAD /v2/models/tiny HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  ExpectError(rest_->Call("GET /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"), 413,
              "expected a request without a body");
}

TEST_F(RestMethodsTest, AModelIsNotReadyWhenTheServerIsNot) {
  RestFixture rest;
  rest.server().service().health().Shutdown();
  EXPECT_EQ(rest.Get("/v2/health/ready").status, 503);
  EXPECT_EQ(rest.Get("/v2/models/tiny/ready").status, 503);
  EXPECT_EQ(rest.Get("/v2/health/live").status, 200);
}

TEST(StartRestCallTest, IsStartingWithoutModels) {
  HttpHandlers handlers;
  handlers.ready = [] { return false; };
  handlers.call = [&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    return StartRestCall(request, reply, ServerSecrets(), nullptr);
  };
  const auto http = HttpServer::Start("127.0.0.1", 0, handlers).value();
  const auto get = [&](const std::string& path) {
    return ParseResult(
        Exchange(http->port(), absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n")));
  };
  EXPECT_EQ(get("/v2/health/live").status, 200);
  EXPECT_EQ(get("/v2/health/ready").status, 503);
  EXPECT_EQ(get("/v2/models/tiny").status, 503);
  EXPECT_EQ(get("/v2/models/tiny").error(), "the server is starting");
}

class RestTokensTest : public ::testing::Test {
 protected:
  RestTokensTest() {
    std::string folder = ::testing::TempDir() + "attendant_rest_XXXXXX";
    folder_ = mkdtemp(folder.data());
    // The SHA-256 of "test" and "alpha".
    std::ofstream(folder_ + "/tokens")
        << "infer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
           "metrics 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n";
    tokens_ = Reloaded<Tokens>::Load({folder_ + "/tokens"}, [](const auto& texts) {
                return Tokens::Parse(texts[0]);
              }).value();
  }
  ~RestTokensTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::unique_ptr<Reloaded<Tokens>> tokens_;
};

TEST_F(RestTokensTest, CallsNeedATokenForInfer) {
  RestFixture rest({}, RestFixture::Limits(), {nullptr, tokens_.get()});
  const std::string body = IdsBody().dump();
  const auto call = [&](const std::string& token) {
    return rest.Post("/v2/models/tiny/infer", body,
                     token.empty() ? "" : absl::StrCat("Authorization: Bearer ", token, "\r\n"));
  };
  EXPECT_EQ(call("test").status, 200);
  for (const char* token : {"", "wrong"}) {
    const RestResult result = call(token);
    EXPECT_EQ(result.status, 401);
    EXPECT_EQ(result.error(), "the call needs a valid bearer token");
    EXPECT_EQ(result.header("www-authenticate"), "Bearer");
  }
  EXPECT_EQ(call("alpha").status, 403);
  EXPECT_EQ(call("alpha").error(), "the bearer token lacks the scope infer");
  for (const char* path : {"/v2", "/v2/models/tiny", "/v2/models/tiny/ready", "/v2/models/stats"}) {
    EXPECT_EQ(rest.Get(path).status, 401) << path;
    EXPECT_EQ(rest.Get(path, "Authorization: Bearer test\r\n").status, 200) << path;
  }
  EXPECT_EQ(rest.Get("/v2/health/live").status, 200);
  EXPECT_EQ(rest.Get("/v2/health/ready").status, 200);
}

}  // namespace rest_methods_test
}  // namespace attendant::server
