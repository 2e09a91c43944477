// Tests of calls with many texts, of the bounds of text calls, and of callers who go.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/text_calls/text_fixture.h"

namespace attendant::server {
namespace text_flow_test {

using ::testing::HasSubstr;

TestServerOptions GateClosed() {
  TestServerOptions options = TextFixture::Serving();
  options.gate_closed = true;
  options.limits.max_answer_bytes = int64_t{16} << 20;
  return options;
}

// Texts of one to seven words.
Json ManyTexts(int count) {
  Json texts = Json::array();
  for (int i = 0; i < count; ++i) texts.push_back(Words(1 + i % 7, 10 + i % 83));
  return texts;
}

std::unique_ptr<TcpClient> Begin(const TextFixture& rest, const Json& body,
                                 const std::string& headers = "") {
  auto client = std::make_unique<TcpClient>(rest.port());
  const std::string text = body.dump();
  EXPECT_TRUE(client->Send(PostHead("/v1/embeddings", text.size(), headers) + text));
  return client;
}

// A batch that is being computed keeps its memory until it ends.
void AwaitNothingHeld(TextFixture& rest) {
  rest.server().AwaitInflight(0);
  while (rest.server().admission().memory().counts().all() > 0) std::this_thread::yield();
}

TEST(TextFlowTest, ManyTextsGoInAsThereIsRoom) {
  TextFixture rest(GateClosed());
  const Json texts = ManyTexts(2000);
  const auto caller = Begin(rest, {{"input", texts}});
  rest.server().gate().AwaitBlocked();
  // The window of SmallLimits, one part of which is being computed.
  while (rest.server().queue().counts().jobs < 3) std::this_thread::yield();
  EXPECT_LE(rest.server().queue().counts().jobs, 4);
  rest.server().gate().Open();
  const RestResult result = ParseResult(caller->ReceiveAnswer());
  ASSERT_EQ(result.status, 200) << result.body.substr(0, 200);
  const Json answer = result.json();
  ASSERT_EQ(answer["data"].size(), 2000u);
  for (const int i : {0, 1, 6, 999, 1999}) {
    const RestResult alone = rest.Ask("/v1/embeddings", {{"input", texts[i]}});
    EXPECT_EQ(answer["data"][i]["embedding"], alone.json()["data"][0]["embedding"]) << i;
    EXPECT_EQ(answer["data"][i]["index"], i);
  }
  rest.server().ExpectMetrics(HasSubstr("method=\"openai_embeddings\",model=\"tiny\"} 6"));
  AwaitNothingHeld(rest);
}

TEST(TextFlowTest, TheFirstPartIsRefusedWhenTheQueueIsFull) {
  TestServerOptions options = GateClosed();
  options.queue.max_jobs = 1;
  TextFixture rest(std::move(options));
  const auto running = Begin(rest, {{"input", "w7"}});
  rest.server().gate().AwaitBlocked();
  const auto waiting = Begin(rest, {{"input", "w7"}});
  rest.server().AwaitQueued(1);
  const RestResult refused = rest.Ask("/v1/embeddings", {{"input", "w7"}});
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_NE(refused.header("retry-after"), "");
  EXPECT_NE(refused.header("attendant-reason"), "");
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(running->ReceiveAnswer()).status, 200);
  EXPECT_EQ(ParseResult(waiting->ReceiveAnswer()).status, 200);
  AwaitNothingHeld(rest);
}

TEST(TextFlowTest, ACallerWhoHangsUpStopsIt) {
  TextFixture rest(GateClosed());
  auto caller = Begin(rest, {{"input", ManyTexts(2000)}});
  rest.server().gate().AwaitBlocked();
  caller.reset();
  rest.server().AwaitQueued(0);  // those that wait are dropped
  rest.server().gate().Open();
  AwaitNothingHeld(rest);
  rest.server().ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"CANCELLED\",method=\"openai_embeddings\",model="
                "\"tiny\"} 1"));
  EXPECT_LE(rest.server().gate().passed(), 2);
}

TEST(TextFlowTest, ADeadlineEndsIt) {
  TextFixture rest(GateClosed());
  const auto running = Begin(rest, {{"input", "w7"}});
  rest.server().gate().AwaitBlocked();
  const auto late = Begin(rest, {{"input", "w7"}}, "x-request-timeout: 0.01\r\n");
  rest.server().AwaitQueued(1);
  const absl::Time begun = absl::Now();
  while (absl::Now() < begun + absl::Milliseconds(10)) std::this_thread::yield();
  rest.server().gate().Open();
  const RestResult result = ParseResult(late->ReceiveAnswer());
  EXPECT_EQ(result.status, 504) << result.body;
  EXPECT_EQ(ParseResult(running->ReceiveAnswer()).status, 200);
  AwaitNothingHeld(rest);
}

TEST(TextFlowTest, RefusesWhenThereIsNoMemory) {
  TestServerOptions options = TextFixture::Serving();
  options.admission.memory = {100 << 10};
  TextFixture rest(std::move(options));
  Budget::Reservation taken;
  ASSERT_TRUE(rest.server().admission().Charge({"other", 99 << 10, HeldFor::kRequest}, taken).ok());
  const RestResult result = rest.Ask("/v1/embeddings", {{"input", "w7"}});
  EXPECT_EQ(result.status, 429);
  EXPECT_EQ(result.header("attendant-reason"), "memory");
  taken.Release();
  AwaitNothingHeld(rest);
}

TEST(TextFlowTest, ReadingABodyTakesFourTimesItsBytesMore) {
  constexpr int64_t kMemory = int64_t{1} << 20, kBytes = 100'000;
  TestServerOptions options = TextFixture::Serving();
  options.admission.memory = {kMemory};
  TextFixture rest(std::move(options));
  const Json body = {{"input", "w7"}, {"ignored", std::string(kBytes, 'a')}};
  Budget::Reservation taken;
  ASSERT_TRUE(rest.server()
                  .admission()
                  .Charge({"other", kMemory - 9 * kBytes / 2, HeldFor::kRequest}, taken)
                  .ok());
  const RestResult refused = rest.Ask("/v1/embeddings", body);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("attendant-reason"), "memory");
  ASSERT_TRUE(rest.server()
                  .admission()
                  .Charge({"other", kMemory - 11 * kBytes / 2, HeldFor::kRequest}, taken)
                  .ok());
  EXPECT_EQ(rest.Ask("/v1/embeddings", body).status, 200);
  taken.Release();
  AwaitNothingHeld(rest);
}

TEST(TextFlowTest, PartsWaitForTheMemoryOfOthers) {
  TestServerOptions options = TextFixture::Serving();
  options.limits.max_answer_bytes = int64_t{16} << 20;
  options.admission.memory = {int64_t{4} << 20};
  TextFixture rest(std::move(options));
  const RestResult result = rest.Ask("/v1/embeddings", {{"input", ManyTexts(1000)}});
  EXPECT_EQ(result.status, 200) << result.body.substr(0, 200);
  AwaitNothingHeld(rest);
}

TEST(TextFlowTest, RefusesWhenThereIsNoSlot) {
  TestServerOptions options = GateClosed();
  options.admission.slots = {1};
  TextFixture rest(std::move(options));
  const auto first = Begin(rest, {{"input", "w7"}});
  rest.server().AwaitInflight(1);
  const RestResult second = rest.Ask("/v1/embeddings", {{"input", "w7"}});
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.header("attendant-reason"), "slots");
  rest.server().ExpectMetrics(
      HasSubstr("attendant_refusals_total{method=\"openai_embeddings\",reason=\"slots\"} 1\n"));
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(first->ReceiveAnswer()).status, 200);
}

TEST(TextFlowTest, AConnectionServesOneCallAfterTheOther) {
  TextFixture rest;
  TcpClient client(rest.port());
  const std::string good = R"({"input": "w7"})", bad = "{";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(PostHead("/v1/embeddings", good.size()) + good +
                            PostHead("/embed", bad.size()) + bad));
    EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 200);
    EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 400);
    ASSERT_TRUE(client.Send("GET /health HTTP/1.1\r\n\r\n"));
    EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 200);
  }
}

TEST(TextFlowTest, TheTraceOfACallIsReturned) {
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  TextFixture rest;
  for (const Json& body : {Json{{"input", "w7"}}, Json{{"input", 1.5}}}) {
    const RestResult result =
        rest.Ask("/v1/embeddings", body, absl::StrCat("traceparent: ", trace, "\r\n"));
    EXPECT_EQ(result.header("traceparent"), trace);
  }
}

// A server of a model with these prompts, whose vectors have length 1.
TextFixture OfUnitVectors(const std::map<std::string, std::string>& prompts) {
  ModelDescription description = TestModels().at("tiny")->encoder->description();
  description.pooling->normalize = true;
  auto model = std::make_shared<ServedModel>(*ModelOf("tiny", description).at("tiny"));
  Tokenization tokenization;
  tokenization.prompts = prompts;
  model->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
  model->tokenizer = WordsTokenizer();
  return TextFixture(TextFixture::Serving({{"tiny", model}}));
}

TEST(TextFlowTest, VectorsThatAreCutAreScaledOnlyIfTheRequestSaysSo) {
  TextFixture rest = OfUnitVectors({});
  const auto embed = [&](const Json& options) {
    Json body = {{"inputs", "w11"}};
    body.update(options);
    return rest.Ask("/embed", body).json()[0].get<std::vector<float>>();
  };
  std::vector<float> expected = embed({{"normalize", false}});
  expected.resize(4);
  EXPECT_EQ(embed({{"normalize", false}, {"dimensions", 4}}), expected);
  const std::vector<float> scaled = embed({{"dimensions", 4}});
  EXPECT_NEAR(std::inner_product(scaled.begin(), scaled.end(), scaled.begin(), 0.0), 1, 1e-5);
  EXPECT_NEAR(scaled[0] / scaled[1], expected[0] / expected[1], 1e-4);
}

TEST(TextFlowTest, APurposeSelectsAPromptInAnyCase) {
  TextFixture rest = OfUnitVectors({{"Clustering", "w7 "}});
  const RestResult result =
      rest.Ask("/v2/embed", {{"texts", {"w11"}}, {"input_type", "clustering"}});
  EXPECT_THAT(result.json()["embeddings"]["float"][0].get<std::vector<float>>(),
              ::testing::Pointwise(::testing::FloatNear(1e-6f), rest.VectorOf({2, 7, 11, 3})));
}

TEST(TextFlowTest, AliasesAreNamesOfModels) {
  TextFixture rest;
  rest.server().models().SetAliases({{"text-embedding-3-small", "tiny"}, {"org/e5", "tiny"}});
  const Json own = rest.Ask("/v1/embeddings", {{"input", "w7"}}).json();
  for (const std::string name : {"text-embedding-3-small", "org/e5"}) {
    const Json answer = rest.Ask("/v1/embeddings", {{"model", name}, {"input", "w7"}}).json();
    EXPECT_EQ(answer["data"], own["data"]);
    EXPECT_EQ(answer["model"], name);
    EXPECT_EQ(rest.Ask(absl::StrCat("/models/", name, "/embed"), {{"inputs", "w7"}}).status, 200);
    EXPECT_EQ(rest.Get(absl::StrCat("/v1/models/", name)).json()["id"], name);
  }
  EXPECT_THAT(rest.Get("/v1/models").body, HasSubstr("\"org/e5\""));
  EXPECT_EQ(rest.Infer("text-embedding-3-small", IdsBody()).status, 200);
}

}  // namespace text_flow_test
}  // namespace attendant::server
