// Tests of the page of the real server.
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_process.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace page_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(PageTest, IsServedBesideEverythingElse) {
  ReadyServer server;
  EXPECT_THAT(server.Get("/"), HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(server.Get("/page/facts.json"), EndsWith(R"({"rest":true,"tokens":false})"));
  EXPECT_THAT(server.Get("/readyz"), EndsWith("ready\n"));
  EXPECT_THAT(server.Get("/v2"), HasSubstr("\"name\":\"attendant\""));
  EXPECT_THAT(server.Get("/metrics"),
              HasSubstr("attendant_model_info{compute_type=\"f32\",family=\"worked-example\","
                        "heads=\"1\",hidden_size=\"4\",layers=\"1\",model=\"worked-example\","
                        "version=\"0\"} 1\n"));
}

TEST(PageTest, TheLogShowsHowToSendAText) {
  ServerProcess process({"--address=127.0.0.1", "--port=0", "--http-port=0",
                         "--model=words=synthetic:words", "--model=a=worked-example"});
  const std::string line = process.AwaitLine("try: ");
  const std::string before = "try: curl http://127.0.0.1:";
  ASSERT_THAT(line, HasSubstr(before));
  int port;
  ASSERT_TRUE(absl::SimpleAtoi(line.substr(line.find(before) + before.size(),
                                           line.find("/v1/") - line.find(before) - before.size()),
                               &port));
  const std::string body =
      line.substr(line.find("-d '") + 4, line.rfind('\'') - line.find("-d '") - 4);
  EXPECT_EQ(body, R"({"model": "words", "input": ["hello world"]})");
  const std::string answer = Exchange(
      port, absl::StrCat("POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(),
                         "\r\n\r\n", body));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\"prompt_tokens\":4"));  // [CLS] hello world [SEP]
}

TEST(PageTest, CanBeSwitchedOff) {
  ReadyServer server({"--page=off"});
  EXPECT_THAT(server.Get("/"), EndsWith("\r\n\r\nnot found\n"));
  EXPECT_THAT(server.Get("/page/page.js"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(server.Get("/v2/health/ready"), StartsWith("HTTP/1.1 200"));
}

TEST(PageTest, KnowsThatThereIsNoRest) {
  ReadyServer server({"--rest=off"});
  EXPECT_THAT(server.Get("/page/facts.json"), EndsWith(R"({"rest":false,"tokens":false})"));
}

}  // namespace page_test
}  // namespace attendant::server
