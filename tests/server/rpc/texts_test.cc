// Tests of Encode with texts.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "server/text/tokenizer_files.h"
#include "tests/server/support/encode_calls.h"
#include "tests/server/support/text_models.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace texts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum Word : int64_t { kPad, kUnk, kCls, kSep, kHello, kWorld, kGood, kBye, kQuery, kColon };

v1::EncodeRequest Texts(std::vector<std::string> texts, std::vector<std::string> pairs = {}) {
  v1::EncodeRequest request;
  request.set_model("tiny");
  for (std::string& text : texts) request.add_texts(std::move(text));
  for (std::string& text : pairs) request.add_text_pairs(std::move(text));
  request.set_return_pooled(true);
  return request;
}

// The request for the same tokens as ids.
v1::EncodeRequest Ids(std::vector<std::vector<int64_t>> texts,
                      const std::vector<int64_t>& types = {}) {
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.set_return_pooled(true);
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& ids : texts) {
    request.add_lengths(static_cast<int64_t>(ids.size()));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  const auto count = static_cast<int64_t>(all.size());
  *request.mutable_token_ids() = IntegerTensor({count}, all);
  if (!types.empty()) *request.mutable_token_type_ids() = IntegerTensor({count}, types);
  return request;
}

// TextModels(), and "prompted", which leaves prompts out of its vectors.
TestServerOptions Serving() {
  TestServerOptions options;
  options.models = TextModels();
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.pooling = {.modes = {PoolingMode::kMean}, .excludes_prompt = true};
  options.models["prompted"] = WithTexts(*ModelOf("prompted", model).at("prompted"));
  return options;
}

class TextsTest : public ::testing::Test {
 protected:
  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server_, request); }

  void ExpectSame(const v1::EncodeRequest& texts, const v1::EncodeRequest& ids) {
    const v1::EncodeResponse by_texts = Call(texts), by_ids = Call(ids);
    EXPECT_EQ(by_texts.hidden_states().data(), by_ids.hidden_states().data());
    EXPECT_THAT(by_texts.hidden_states().shape(),
                ::testing::ElementsAreArray(by_ids.hidden_states().shape()));
    EXPECT_EQ(by_texts.pooled().data(), by_ids.pooled().data());
    EXPECT_THAT(by_texts.lengths(), ::testing::ElementsAreArray(ids.lengths()));
  }

  void ExpectRefused(const v1::EncodeRequest& request, const std::string& message) {
    v1::EncodeResponse response;
    const grpc::Status status = server_.Encode(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }

  TestServer server_ = TestServer(Serving());
};

TEST_F(TextsTest, AreTheirTokens) {
  ExpectSame(Texts({"Hello world", "goodbye nobody", ""}),
             Ids({{kCls, kHello, kWorld, kSep}, {kCls, kGood, kBye, kUnk, kSep}, {kCls, kSep}}));
}

TEST_F(TextsTest, ArePairsThatAreReadTogether) {
  ExpectSame(Texts({"hello"}, {"good world"}),
             Ids({{kCls, kHello, kSep, kGood, kWorld, kSep}}, {0, 0, 0, 1, 1, 1}));
  v1::EncodeRequest texts = Texts({"hello"}, {"world"}), ids = Ids({{2, 4, 3, 5, 3}});
  for (v1::EncodeRequest* request : {&texts, &ids}) {  // which has no types of tokens
    request->set_model("counting");
    request->set_pooling(v1::CLASSIFIER);
  }
  ExpectSame(texts, ids);
}

TEST(TypesOfTextsTest, AreZeroIfTheTokenizerGivesNone) {
  TestServerOptions options = Serving();
  auto model = std::make_shared<ServedModel>(*options.models.at("tiny"));
  auto tokenizer = std::make_shared<ModelTokenizer>();
  auto loaded = text::LoadTokenizerFiles(
      {{"vocab.txt", absl::StrJoin(kTextWords, "\n")},
       {"tokenizer_config.json", R"({"model_input_names":["input_ids","attention_mask"]})"}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  tokenizer->tokenizer = std::move(loaded->tokenizer);
  tokenizer->has_types = loaded->has_types;
  model->tokenizer = tokenizer;
  options.models["tiny"] = model;
  TestServer server(options);
  const v1::EncodeRequest texts = Texts({"hello"}, {"good world"});
  EXPECT_EQ(EncodeOk(server, texts).pooled().data(),
            EncodeOk(server, Ids({{kCls, kHello, kSep, kGood, kWorld, kSep}})).pooled().data());
  v1::TokenizeRequest request;
  request.set_model("tiny");
  request.add_texts("hello");
  request.add_text_pairs("good world");
  v1::TokenizeResponse tokens;
  grpc::ClientContext context;
  ASSERT_TRUE(server.stub().Tokenize(&context, request, &tokens).ok());
  EXPECT_THAT(tokens.texts(0).token_type_ids(), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST_F(TextsTest, AreCutAtTheLengthThatTheModelIsMeantFor) {
  const std::string text = "hello hello hello hello hello hello world good bye";
  v1::EncodeRequest request = Texts({text, "hello"});
  request.set_truncation(v1::TRUNCATE_RIGHT);
  ExpectSame(request, Ids({{2, 4, 4, 4, 4, 4, 4, 3}, {2, 4, 3}}));
  EXPECT_EQ(Call(request).execution().truncated_tokens(), 1);
  request.set_truncation(v1::TRUNCATE_LEFT);
  ExpectSame(request, Ids({{2, 4, 4, 4, 5, 6, 1, 3}, {2, 4, 3}}));
  request.set_truncation(v1::NO_TRUNCATION);
  ExpectSame(request, Ids({{2, 4, 4, 4, 4, 4, 4, 5, 6, 1, 3}, {2, 4, 3}}));
}

TEST_F(TextsTest, HavePrompts) {
  v1::EncodeRequest request = Texts({"hello"});
  request.set_prompt_name("query");
  ExpectSame(request, Ids({{2, kQuery, kColon, kHello, 3}}));
  request.set_prompt_name("none");
  ExpectSame(request, Ids({{2, kHello, 3}}));
  request.clear_prompt_name();
  request.set_prompt("good");
  ExpectSame(request, Ids({{2, kUnk, 3}}));  // goodhello
  request.set_prompt("");
  ExpectSame(request, Ids({{2, kHello, 3}}));
}

TEST_F(TextsTest, HavePromptsBeforeTheFirstTextOfAPair) {
  v1::EncodeRequest request = Texts({"hello"}, {"good world"});
  request.set_prompt_name("query");
  request.set_return_tokens(true);
  const v1::EncodeResponse response = Call(request);
  ASSERT_EQ(response.tokens_size(), 1);
  const v1::TextTokens& tokens = response.tokens(0);
  EXPECT_THAT(tokens.ids(), ElementsAre(kCls, kQuery, kColon, kHello, kSep, kGood, kWorld, kSep));
  EXPECT_THAT(tokens.begins(), ElementsAre(0, 0, 0, 0, 0, 0, 5, 0));
  EXPECT_THAT(tokens.ends(), ElementsAre(0, 0, 0, 5, 0, 4, 10, 0));
}

TEST(DefaultPromptTest, IsForTextsClassesAndPairs) {
  TestServerOptions options = Serving();
  for (const char* name : {"tiny", "counting"}) {
    auto model = std::make_shared<ServedModel>(*options.models[name]);
    Tokenization tokenization = *model->tokenization;
    tokenization.default_prompt = "query";
    model->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
    options.models[name] = model;
  }
  TestServer server(options);
  const auto length = [&](const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server.Encode(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.lengths_size() == 1 ? response.lengths(0) : -1;
  };
  v1::EncodeRequest request = Texts({"hello"});
  EXPECT_EQ(length(request), 5);
  request.set_prompt_name("none");
  EXPECT_EQ(length(request), 3);
  request.clear_prompt_name();
  request.set_model("counting");
  request.set_pooling(v1::CLASSIFIER);
  EXPECT_EQ(length(request), 5);
  request = Texts({"hello"}, {"world"});
  EXPECT_EQ(length(request), 7);
  request.set_prompt("");
  EXPECT_EQ(length(request), 5);
}

TEST_F(TextsTest, ArePooledWithoutTheirPromptIfTheModelDoesSo) {
  v1::EncodeRequest texts = Texts({"hello world"});
  texts.set_model("prompted");
  texts.set_prompt_name("query");
  v1::EncodeRequest ids = Ids({{2, kQuery, kColon, kHello, kWorld, 3}});
  ids.set_model("prompted");
  ids.add_prompt_tokens(3);
  ExpectSame(texts, ids);
  texts.set_truncation(v1::TRUNCATE_LEFT);
  ExpectRefused(texts,
                "truncation: TRUNCATE_LEFT not supported by model \"prompted\": it excludes its "
                "prompt from pooling; use TRUNCATE_RIGHT");
  texts.set_model("tiny");
  ids.set_model("tiny");
  ExpectSame(texts, ids);
}

// As sentence-transformers with a tokenizer that truncates on the left.
TEST(PromptOfLeftwardModelTest, IsLeftOutAlsoWhereTextsAreCutOnTheLeft) {
  TestServerOptions options = Serving();
  TruncateOnTheLeft(options.models, "prompted");
  TestServer server(options);
  v1::EncodeRequest texts = Texts({"hello hello hello hello world good"});
  texts.set_model("prompted");
  texts.set_prompt_name("query");
  texts.set_truncation(v1::TRUNCATE_LEFT);
  v1::EncodeRequest ids = Ids({{2, 4, 4, 4, 4, 5, 6, 3}});
  ids.set_model("prompted");
  ids.add_prompt_tokens(3);
  EXPECT_EQ(EncodeOk(server, texts).pooled().data(), EncodeOk(server, ids).pooled().data());
  v1::GetModelRequest request;
  request.set_model("prompted");
  v1::GetModelResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(server.stub().GetModel(&context, request, &response).ok());
  EXPECT_TRUE(response.embeddings().truncates_left());
}

TEST_F(TextsTest, AreAnsweredWithTheirTokens) {
  v1::EncodeRequest request = Texts({"\u00e9 goodbye", "caf\u00e9"});
  request.set_prompt_name("query");
  request.set_return_tokens(true);
  const v1::EncodeResponse response = Call(request);
  ASSERT_EQ(response.tokens_size(), 2);
  const v1::TextTokens& tokens = response.tokens(0);
  EXPECT_THAT(tokens.ids(), ElementsAre(2, kQuery, kColon, kUnk, kGood, kBye, 3));
  EXPECT_THAT(tokens.tokens(),
              ElementsAre("[CLS]", "query", ":", "[UNK]", "good", "##bye", "[SEP]"));
  EXPECT_THAT(tokens.sources(), ElementsAre(2, 0, 0, 0, 0, 0, 2));
  EXPECT_THAT(tokens.begins(), ElementsAre(0, 0, 0, 0, 2, 6, 0));
  EXPECT_THAT(tokens.ends(), ElementsAre(0, 0, 0, 1, 6, 9, 0));
  EXPECT_THAT(tokens.byte_begins(), ElementsAre(0, 0, 0, 0, 3, 7, 0));
  EXPECT_THAT(tokens.byte_ends(), ElementsAre(0, 0, 0, 2, 7, 10, 0));
  EXPECT_THAT(tokens.token_type_ids(), ElementsAre(0, 0, 0, 0, 0, 0, 0));
  EXPECT_FALSE(tokens.truncated());
  EXPECT_THAT(response.tokens(1).tokens(),
              ElementsAre("[CLS]", "query", ":", "caf", "##e", "[SEP]"));
  EXPECT_GT(response.execution().tokenize_ns(), 0);
}

TEST_F(TextsTest, ArePaddedIfThatIsAskedFor) {
  v1::EncodeRequest request = Texts({"hello", "hello world"});
  request.set_pad_texts(true);
  const v1::EncodeResponse response = Call(request);
  EXPECT_THAT(response.hidden_states().shape(), ElementsAre(2, 4, 32));
  const std::vector<float> rows = ToFloats(response.hidden_states());
  EXPECT_THAT(Rows(rows, 32, 3, 1), ::testing::Each(0.0f));
  EXPECT_THAT(Rows(rows, 32, 2, 1), ::testing::Contains(::testing::Ne(0.0f)));
  request.set_pad_texts(false);
  EXPECT_EQ(Call(request).pooled().data(), response.pooled().data());
}

TEST_F(TextsTest, ComeInStreams) {
  grpc::ClientContext context;
  const auto stream = server_.stub().EncodeStream(&context);
  v1::EncodeStreamRequest item;
  for (uint64_t id = 1; id <= 20; ++id) {
    item.set_id(id);
    *item.mutable_request() = id % 2 == 0 ? Texts({"hello world"}) : Ids({{2, 4, 5, 3}});
    if (id == 10) *item.mutable_request() = Texts(std::vector<std::string>(1025, "a"));
    if (id == 20) item.mutable_request()->add_text_pairs("good");
    if (id == 20) item.mutable_request()->add_text_pairs("good");
    ASSERT_TRUE(stream->Write(item));
  }
  stream->WritesDone();
  const std::string expected = Call(Ids({{2, 4, 5, 3}})).pooled().data();
  v1::EncodeStreamResponse answer;
  int answers = 0;
  while (stream->Read(&answer)) {
    ++answers;
    if (answer.id() == 10) {
      EXPECT_EQ(answer.error().message(), "texts: expected at most 1024 texts; got more");
    } else if (answer.id() == 20) {
      EXPECT_THAT(answer.error().message(),
                  HasSubstr("text_pairs: expected none or 1 (one for each text); got 2"));
    } else {
      EXPECT_EQ(answer.response().pooled().data(), expected) << answer.error().message();
    }
  }
  EXPECT_EQ(answers, 20);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TextsTest, AreNotPartsOfASequence) {
  grpc::ClientContext context;
  const auto stream = server_.stub().EncodeStream(&context);
  v1::EncodeStreamRequest item;
  item.set_sequence(1);
  *item.mutable_request() = Texts({"hello"});
  stream->Write(item);
  stream->WritesDone();
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_EQ(answer.error().code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
}

TEST_F(TextsTest, AreRefusedByName) {
  v1::EncodeRequest request = Texts({"hello"});
  request.set_model("patches");
  request.set_return_pooled(false);
  ExpectRefused(request, "texts: not supported by model \"patches\": ");
  request = Texts({"hello"}, {"a", "b"});
  ExpectRefused(request, "text_pairs: expected none or 1 (one for each text); got 2");
  request = Texts({"hello"});
  request.set_prompt_name("passage");
  ExpectRefused(request, "prompt_name: expected one of the model's prompts, none, query; got");
  request.set_prompt("good ");
  ExpectRefused(request, "prompt_name: cannot be combined with prompt");
  request = Texts({"hello"});
  request.set_truncation(static_cast<v1::Truncation>(7));
  ExpectRefused(request, "truncation: expected a Truncation value; got 7");
  std::string longest;
  for (int i = 0; i < 63; ++i) longest += "hello ";
  ExpectRefused(Texts({"hello", longest}),
                "texts[1]: expected at most 64 tokens; got 65; set truncation (truncate over HTTP) "
                "to cut longer texts");
  ExpectRefused(
      Texts(std::vector<std::string>(90, "hello")),
      "texts: expected at most 256 tokens in total (--max-request-tokens); got more, up to "
      "texts[85]");
  request = Texts(std::vector<std::string>(70, "hello"));
  request.add_texts("hello world");
  request.set_pad_texts(true);
  ExpectRefused(request, "at most 256");
}

TEST_F(TextsTest, RefuseWhatIsOfOtherInputs) {
  v1::EncodeRequest request = Texts({"hello"});
  request.add_lengths(3);
  ExpectRefused(request, "lengths: cannot be combined with texts");
  request = Texts({"hello"});
  *request.mutable_attention_mask() = IntegerTensor({1, 3}, {1, 1, 1});
  ExpectRefused(request, "attention_mask: cannot be combined with texts");
  request = Texts({"hello"});
  *request.mutable_token_type_ids() = IntegerTensor({1, 3}, {1, 1, 1});
  ExpectRefused(request, "token_type_ids: cannot be combined with texts");
  request = Texts({"hello"});
  *request.mutable_position_ids() = IntegerTensor({1, 3}, {1, 1, 1});
  ExpectRefused(request, "position_ids: cannot be combined with texts");
  request = Texts({"hello"});
  request.add_prompt_tokens(1);
  ExpectRefused(request, "prompt_tokens: cannot be combined with texts");
  request = Texts({"hello"});
  request.set_layout(v1::SEQUENCE_FIRST);
  ExpectRefused(request, "layout: cannot be combined with texts");
  request = Texts({"hello"});
  request.mutable_layers()->set_first(1);
  request.mutable_layers()->set_count(1);
  ExpectRefused(request, "layers.first: expected 0 with texts; got 1");
  request = Ids({{2, 3}});
  request.add_texts("hello");
  ExpectRefused(request, "exactly one of hidden_states, token_ids, features and texts; got 2");
  request = Ids({{2, 3}});
  request.add_text_pairs("hello");
  ExpectRefused(request, "text_pairs: requires texts");
  request = Ids({{2, 3}});
  request.set_prompt("");
  ExpectRefused(request, "prompt: requires texts");
  request = Ids({{2, 3}});
  request.set_prompt_name("query");
  ExpectRefused(request, "prompt_name: requires texts");
  request = Ids({{2, 3}});
  request.set_return_tokens(true);
  ExpectRefused(request, "return_tokens: requires texts");
  request = Ids({{2, 3}});
  request.set_pad_texts(true);
  ExpectRefused(request, "pad_texts: requires texts");
}

// The answer to bytes that protobuf's own stubs would not send.
TEST_F(TextsTest, AreUtf8) {
  grpc::GenericStub stub(server_.channel());
  v1::EncodeRequest request = Texts({"hello", "XX"}, {"hello", "hello"});
  std::string bytes = request.SerializeAsString();
  bytes.replace(bytes.find("XX"), 2, "a\xff");
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer message(&slice, 1);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/attendant.v1.EncoderService/Encode", message, &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "texts[1]: expected UTF-8; got something else at byte 1");
}

TEST(TextRoomTest, MemoryIsChargedBeforeTextsAreTokenized) {
  TestServerOptions options = Serving();
  options.limits.max_request_bytes = int64_t{2} << 20;
  options.admission.memory = {.total = int64_t{4} << 20};
  TestServer server(options);
  v1::EncodeRequest request = Texts({std::string(100'000, 'x')});
  request.set_truncation(v1::TRUNCATE_RIGHT);
  v1::EncodeResponse response;
  const grpc::Status status = server.Encode(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("bytes with its response; the server has 4194304"));
  request.set_texts(0, "hello");
  EXPECT_TRUE(server.Encode(request, &response).ok());
}

// Keeps the workers of a server busy until it goes.
class BusyWorkers {
 public:
  explicit BusyWorkers(TestServer& server) {
    for (int i = 0; i < 2; ++i) {
      server.service().context().workers.Run([end = end_] { end->WaitForNotification(); });
    }
  }
  ~BusyWorkers() { end_->Notify(); }

 private:
  const std::shared_ptr<absl::Notification> end_ = std::make_shared<absl::Notification>();
};

TEST_F(TextsTest, OfCallersWhoHaveGoneAreNotTokenized) {
  {
    BusyWorkers busy(server_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    v1::EncodeResponse response;
    EXPECT_EQ(server_.stub().Encode(&context, Texts({"hello"}), &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
    server_.AwaitInflight(0);
  }
  Call(Ids({{2, 3}}));
  EXPECT_EQ(server_.gate().passed(), 1);
}

TEST_F(TextsTest, AreToldInTheModel) {
  grpc::ClientContext context, other;
  v1::GetModelRequest request;
  request.set_model("tiny");
  v1::GetModelResponse model;
  ASSERT_TRUE(server_.stub().GetModel(&context, request, &model).ok());
  EXPECT_TRUE(model.takes_texts());
  EXPECT_EQ(model.why_no_texts(), "");
  EXPECT_EQ(model.cost_model().text_bytes_per_second(), 1e6f);
  request.set_model("patches");
  ASSERT_TRUE(server_.stub().GetModel(&other, request, &model).ok());
  EXPECT_FALSE(model.takes_texts());
  EXPECT_EQ(model.why_no_texts(), "it was not loaded from a directory with a tokenizer");
}

}  // namespace texts_test
}  // namespace attendant::server
