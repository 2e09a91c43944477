// Tests of texts over HTTP with the real server and a folder that has a tokenizer.
#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/integration/server_process.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace texts_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TextsTest : public ::testing::Test {
 protected:
  TextsTest() {
    folder_.Write("m/config.json", TinyBertConfig());
    folder_.Write("m/model.safetensors", MakeSafetensors(TinyBertTensors()));
    folder_.Write("m/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\n");
    model_ = absl::StrCat("--model=org/m=", folder_.File("m"));
  }

  static std::string Post(const ReadyServer& server, const std::string& path,
                          const std::string& body, const std::string& headers = "") {
    return Exchange(server.http_port(),
                    absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", headers,
                                 "Content-Length: ", body.size(), "\r\n\r\n", body));
  }

  std::vector<std::string> BadStart(const std::vector<std::string>& flags) const {
    std::vector<std::string> all = {"--address=127.0.0.1", "--port=0", "--http-port=0", model_};
    all.insert(all.end(), flags.begin(), flags.end());
    const ServerProcess::End end = ServerProcess(all).AwaitEnd();
    EXPECT_EQ(end.code, 2);
    return end.lines;
  }

  TempFolder folder_;
  std::string model_;
};

TEST_F(TextsTest, AreServedUnderAnotherNameAndToPagesOfAnotherOrigin) {
  ReadyServer server({model_, "--alias=ada=org/m", "--cors-origin=https://a.example"});
  const std::string body = R"({"model": "ada", "input": ["a b", "c"]})";
  const std::string answer = Post(server, "/v1/embeddings", body, "Origin: https://a.example\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200"),
                            HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"),
                            HasSubstr("\"model\":\"ada\""), HasSubstr("\"total_tokens\":7")));
  EXPECT_THAT(Post(server, "/models/org/m/embed", R"({"inputs": "a b"})"),
              AllOf(StartsWith("HTTP/1.1 200"), EndsWith("]]")));
  EXPECT_THAT(server.Get("/v1/models"), AllOf(HasSubstr("\"ada\""), HasSubstr("\"org/m\"")));
  EXPECT_THAT(server.Get("/"), HasSubstr("text/html"));
  server.ExpectMetrics(HasSubstr("method=\"openai_embeddings\",model=\"org/m\"} 1"));

  grpc::ClientContext call;
  v1::GetModelRequest request;
  request.set_model("ada");
  v1::GetModelResponse model;
  EXPECT_TRUE(server.NewStub()->GetModel(&call, request, &model).ok());
  EXPECT_EQ(model.name(), "org/m");
}

TEST_F(TextsTest, AreNotServedWithoutRest) {
  ReadyServer server({model_, "--rest=off"});
  EXPECT_THAT(Post(server, "/v1/embeddings", R"({"input": "a"})"), StartsWith("HTTP/1.1 404"));
}

TEST_F(TextsTest, AcceptedOnesAreAnsweredOnSigterm) {
  ReadyServer server({model_});
  std::string body = R"({"input": ["a")";
  for (int i = 1; i < 2000; ++i) body += ",\"b c d\"";
  body += "]}";
  TcpClient caller(server.http_port());
  ASSERT_TRUE(caller.Send(
      absl::StrCat("POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(),
                   "\r\n\r\n", body)));
  while (server.Get("/metrics").find("attendant_inflight_requests 1") == std::string::npos &&
         !caller.AwaitInput(0)) {
  }
  server.process().Signal(SIGTERM);
  EXPECT_THAT(caller.ReceiveAnswer(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

TEST_F(TextsTest, AliasesThatCannotBeAreRefusedAtStart) {
  EXPECT_THAT(BadStart({"--alias=ada=none"}),
              Contains(HasSubstr("--alias: ada=none: no model is named \"none\"; the model is "
                                 "\"org/m\"")));
  EXPECT_THAT(BadStart({"--alias=org/m=org/m"}),
              Contains(HasSubstr("--alias: expected a name that is not a model's; got \"org/m\"")));
}

}  // namespace texts_test
}  // namespace attendant::server
