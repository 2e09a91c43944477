// Tests of sequences that are sent in parts over an EncodeStream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <thread>
#include <vector>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace sequence_chunks_test {

using ::testing::HasSubstr;

constexpr int64_t kE = 32;
constexpr int64_t kStateBytes = 512 + 2 * 2 * 4 * 8 * 16 * 4;  // 2 layers, 4 heads, 8 x 8 in 16s

// Returns "fast", which is "tiny" with fast weights, "fast-counting", whose positions count tokens,
// "framed", which is the same model for features with positions, and the models of TestModels().
ServedModels Models() {
  ServedModels models = TestModels();
  ModelDescription fast = models.at("tiny")->encoder->description();
  fast.family = "fast";
  fast.layer.attention.kind = AttentionKind::kCausalLinear;
  fast.layer.attention.score_scale = 0.05f;
  models.merge(ModelOf("fast", fast));
  ModelDescription counting = fast;
  counting.embeddings->position_rule = PositionRule::kCountNotPadding;
  counting.embeddings->first_position = 2;
  models.merge(ModelOf("fast-counting", counting));
  fast.embeddings.reset();
  fast.pooling.reset();
  fast.patch_embedding = {.feature_width = 5, .positions = 20};
  models.merge(ModelOf("framed", fast));
  return models;
}

std::vector<int64_t> SomeIds(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back((i * 37 + 11) % 100);
  return ids;
}

v1::EncodeRequest Ids(const std::vector<int64_t>& ids) {
  v1::EncodeRequest request;
  request.set_model("fast");
  *request.mutable_token_ids() = IntegerTensor({1, static_cast<int64_t>(ids.size())}, ids);
  return request;
}

v1::EncodeStreamRequest Chunk(uint64_t sequence, const v1::EncodeRequest& request) {
  v1::EncodeStreamRequest item;
  item.set_sequence(sequence);
  *item.mutable_request() = request;
  return item;
}

class SequenceChunksTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::EncodeStreamRequest, v1::EncodeStreamResponse>;

  void Start(TestServerOptions options = {}) {
    static const ServedModels models = Models();
    options.models = models;
    server_ = std::make_unique<TestServer>(options);
    stream_ = server_->stub().EncodeStream(&context_);
  }

  // Sends two parts of a sequence: one is about to be computed, and waits for the gate.
  void StartTwoParts() {
    TestServerOptions options;
    options.gate_closed = true;
    Start(options);
    EXPECT_TRUE(stream_->Write(Chunk(1, Ids({1}))));
    server_->gate().AwaitBlocked();
    EXPECT_TRUE(stream_->Write(Chunk(1, Ids({2}))));
  }

  // Waits for the answer to an item.
  v1::EncodeStreamResponse Ask(v1::EncodeStreamRequest item) {
    item.set_id(++asked_);
    EXPECT_TRUE(stream_->Write(item));
    v1::EncodeStreamResponse answer;
    EXPECT_TRUE(stream_->Read(&answer));
    EXPECT_EQ(answer.id(), asked_);
    return answer;
  }

  std::vector<float> Rows(const v1::EncodeStreamRequest& item) {
    const v1::EncodeStreamResponse answer = Ask(item);
    EXPECT_FALSE(answer.has_error()) << answer.error().message();
    return ToFloats(answer.response().hidden_states());
  }

  std::string Error(const v1::EncodeStreamRequest& item,
                    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT) {
    const v1::EncodeStreamResponse answer = Ask(item);
    EXPECT_FALSE(answer.has_response());
    EXPECT_EQ(answer.error().code(), code);
    return answer.error().message();
  }

  std::vector<float> Whole(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server_->Encode(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return ToFloats(response.hidden_states());
  }

  void End() {
    EXPECT_TRUE(stream_->WritesDone());
    const grpc::Status status = stream_->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  std::unique_ptr<TestServer> server_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  uint64_t asked_ = 0;
};

std::vector<int64_t> Cut(const std::vector<int64_t>& ids, int64_t first, int64_t count) {
  return {ids.begin() + first, ids.begin() + std::min<int64_t>(first + count, ids.size())};
}

// The parts share a table of positions, which goes on from part to part, and two layers; their bits
// are those of the whole sequence.
TEST_F(SequenceChunksTest, GetTheAnswersOfTheWhole) {
  Start();
  const std::vector<int64_t> ids = SomeIds(23);
  const std::vector<float> whole = Whole(Ids(ids));
  uint64_t sequence = 0;
  for (const int64_t tokens : {1, 5, 23}) {
    ++sequence;
    for (int64_t first = 0; first < 23; first += tokens) {
      const std::vector<int64_t> chunk = Cut(ids, first, tokens);
      v1::EncodeStreamRequest item = Chunk(sequence, Ids(chunk));
      item.set_first_token(first);
      EXPECT_EQ(Rows(item), server::Rows(whole, kE, first, static_cast<int64_t>(chunk.size())));
    }
  }
  EXPECT_EQ(server_->cross_kv().counts().sequences, 3);
  EXPECT_EQ(server_->cross_kv().counts().sequence_bytes, 3 * kStateBytes);
  End();
  server_->AwaitStreams(0);
  EXPECT_EQ(server_->cross_kv().counts().sequences, 0);
  EXPECT_EQ(server_->cross_kv().counts().sequence_bytes, 0);
}

// The positions are those that RoBERTa of transformers 5.23 looks up for the whole sequence, where
// a padding id has its own and moves those after it no further.
TEST_F(SequenceChunksTest, CountThePositionsOfTheWholeAcrossPaddingIds) {
  Start();
  const std::vector<int64_t> ids = {5, 6, 1, 7, 1, 8, 1, 9}, positions = {2, 3, 1, 4, 1, 5, 1, 6};
  v1::EncodeRequest request = Ids(ids);
  request.set_model("fast-counting");
  v1::EncodeRequest given = request;
  *given.mutable_position_ids() = IntegerTensor({1, 8}, positions);
  const std::vector<float> whole = Whole(given);
  EXPECT_EQ(Whole(request), whole);
  for (int64_t first = 0; first < 8; first += 4) {
    v1::EncodeRequest part = Ids(Cut(ids, first, 4));
    part.set_model("fast-counting");
    v1::EncodeStreamRequest item = Chunk(1, part);
    item.set_first_token(first);
    EXPECT_EQ(Rows(item), server::Rows(whole, kE, first, 4));
  }
  End();
}

// A new version is for new sequences; those that have begun go on with theirs until it is retired.
TEST_F(SequenceChunksTest, KeepTheVersionThatBeganThem) {
  Start();
  const v1::EncodeRequest request = Ids(SomeIds(4));
  Rows(Chunk(1, request));
  Rows(Chunk(2, request));
  ServedModels models = *server_->models().Snapshot();
  std::shared_ptr<const ServedModel> old = models.at("fast");
  ServedModel next = *old;
  next.version = 2;
  next.retired = std::make_shared<std::atomic<bool>>(false);
  models["fast"] = std::make_shared<ServedModel>(std::move(next));
  server_->models().Replace(std::move(models));
  EXPECT_EQ(Ask(Chunk(1, request)).response().execution().model_version(), 0);
  EXPECT_EQ(Ask(Chunk(3, request)).response().execution().model_version(), 2);
  old->retired->store(true);
  const std::string text =
      "sequence: the version of model \"fast\" that made it is no longer served; sequence ";
  EXPECT_EQ(Error(Chunk(1, request), grpc::StatusCode::FAILED_PRECONDITION),
            text + "1 is unchanged, at 8 tokens");
  old.reset();  // sequences do not hold it
  EXPECT_EQ(Error(Chunk(2, request), grpc::StatusCode::FAILED_PRECONDITION),
            text + "2 is unchanged, at 4 tokens");
  EXPECT_EQ(Ask(Chunk(3, request)).response().execution().model_version(), 2);
  EXPECT_EQ(Ask(Chunk(4, request)).response().execution().model_version(), 2);
}

// Their memory is free after the first refusal, and their number after the item that ends them.
// Until then, no chunk sent behind a refused one begins a new sequence.
TEST_F(SequenceChunksTest, OfARetiredVersionMayStartAgain) {
  Start();
  const v1::EncodeRequest request = Ids(SomeIds(4));
  Rows(Chunk(1, request));
  ServedModels models = *server_->models().Snapshot();
  const std::shared_ptr<const ServedModel> old = models.at("fast");
  ServedModel next = *old;
  next.version = 2;
  next.retired = std::make_shared<std::atomic<bool>>(false);
  models["fast"] = std::make_shared<ServedModel>(std::move(next));
  server_->models().Replace(std::move(models));
  old->retired->store(true);
  EXPECT_EQ(server_->cross_kv().counts().sequences, 1);
  Error(Chunk(1, request), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(server_->cross_kv().counts().sequences, 0);
  v1::EncodeStreamRequest last = Chunk(1, request);
  last.set_first_token(0);
  Error(last, grpc::StatusCode::FAILED_PRECONDITION);
  last.set_ends(true);
  Error(last, grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Ask(Chunk(1, request)).response().execution().model_version(), 2);
}

TEST_F(SequenceChunksTest, OfFeaturesGetThePositionsBehindThoseBefore) {
  Start();
  const std::vector<float> values = SomeValues(12 * 5, 3);
  const auto features = [&](int64_t first, int64_t count) {
    v1::EncodeRequest request;
    request.set_model("framed");
    *request.mutable_features() = FloatTensor({count, 5}, server::Rows(values, 5, first, count));
    request.add_lengths(count);
    return request;
  };
  const std::vector<float> whole = Whole(features(0, 12));
  EXPECT_EQ(Rows(Chunk(1, features(0, 7))), server::Rows(whole, kE, 0, 7));
  EXPECT_EQ(Rows(Chunk(1, features(7, 5))), server::Rows(whole, kE, 7, 5));
  EXPECT_EQ(Error(Chunk(1, features(0, 9))),
            "features: expected at most 20 rows in a sequence (the model's positions); got 21 in "
            "sequence 0; sequence 1 is unchanged, at 12 tokens");
}

TEST_F(SequenceChunksTest, OfHiddenStatesGoOnThroughSomeLayersAndBeyondEveryLimit) {
  TestServerOptions options;
  options.limits.max_request_tokens = 100;
  Start(options);
  const std::vector<float> values = SomeValues(90 * kE, 3);
  const auto states = [&](int64_t first, int64_t count) {
    v1::EncodeRequest request;
    request.set_model("fast");
    request.mutable_layers()->set_first(1);
    request.mutable_layers()->set_count(1);
    *request.mutable_hidden_states() =
        FloatTensor({1, count, kE}, server::Rows(values, kE, first, count));
    return request;
  };
  const std::vector<float> whole = Whole(states(0, 90));
  EXPECT_EQ(Rows(Chunk(9, states(0, 60))), server::Rows(whole, kE, 0, 60));
  EXPECT_EQ(Rows(Chunk(9, states(60, 30))), server::Rows(whole, kE, 60, 30));
  Rows(Chunk(9, states(0, 90)));  // token 180, on a server that takes 100
  v1::EncodeRequest other = states(0, 1);
  other.clear_layers();
  EXPECT_EQ(Error(Chunk(9, other)),
            "sequence: expected layers 1..1 of fast (as in its earlier chunks); got layers 0..1 of "
            "fast; sequence 9 is unchanged, at 180 tokens");
}

TEST_F(SequenceChunksTest, OfTwoSequencesMayAlternateWithOtherItemsBetween) {
  Start();
  const std::vector<int64_t> ids = SomeIds(12), others = SomeIds(40);
  const std::vector<int64_t> second = Cut(others, 20, 12);
  const std::vector<float> whole = Whole(Ids(ids)), second_whole = Whole(Ids(second));
  for (int64_t first = 0; first < 12; first += 4) {
    EXPECT_EQ(Rows(Chunk(1, Ids(Cut(ids, first, 4)))), server::Rows(whole, kE, first, 4));
    EXPECT_EQ(Rows(Chunk(0, Ids(ids))), whole);
    EXPECT_EQ(Rows(Chunk(2, Ids(Cut(second, first, 4)))), server::Rows(second_whole, kE, first, 4));
  }
}

TEST_F(SequenceChunksTest, OfOneStreamAreNotSeenByAnother) {
  Start();
  const std::vector<int64_t> ids = SomeIds(6);
  const std::vector<float> whole = Whole(Ids(ids));
  EXPECT_EQ(Rows(Chunk(1, Ids(ids))), whole);
  grpc::ClientContext context;
  const auto other = server_->stub().EncodeStream(&context);
  ASSERT_TRUE(other->Write(Chunk(1, Ids(ids))));
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(other->Read(&answer));
  EXPECT_EQ(ToFloats(answer.response().hidden_states()), whole);
  other->WritesDone();
  EXPECT_TRUE(other->Finish().ok());
}

TEST_F(SequenceChunksTest, EndWithTheLastOne) {
  Start();
  const std::vector<int64_t> ids = SomeIds(6);
  const std::vector<float> whole = Whole(Ids(ids));
  v1::EncodeStreamRequest last = Chunk(1, Ids(Cut(ids, 4, 2)));
  last.set_ends(true);
  Rows(Chunk(1, Ids(Cut(ids, 0, 4))));
  EXPECT_EQ(Rows(last), server::Rows(whole, kE, 4, 2));
  EXPECT_EQ(server_->cross_kv().counts().sequences, 0);
  EXPECT_EQ(Rows(Chunk(1, Ids(ids))), whole);  // a new sequence
}

TEST_F(SequenceChunksTest, ThatFailLeaveTheSequenceAsItWas) {
  TestServerOptions options;
  options.limits.nonfinite = NonfinitePolicy::kReject;
  Start(options);
  const std::vector<int64_t> ids = SomeIds(8);
  const std::vector<float> whole = Whole(Ids(ids));
  EXPECT_EQ(Error(Chunk(1, Ids({100}))),
            "token_ids[0, 0]: expected 0..99; got 100; sequence 1 is unchanged, at 0 tokens");
  EXPECT_EQ(server_->cross_kv().counts().sequences, 0);
  EXPECT_EQ(Rows(Chunk(1, Ids(Cut(ids, 0, 5)))), server::Rows(whole, kE, 0, 5));
  v1::EncodeStreamRequest last = Chunk(1, Ids({7, 100}));
  last.set_ends(true);
  EXPECT_EQ(Error(last),
            "token_ids[0, 1]: expected 0..99; got 100; sequence 1 is unchanged, at 5 tokens");
  // This part fails after the queue, when its rows are read.
  v1::EncodeRequest rows;
  rows.set_model("fast");
  std::vector<float> values(kE, 0.5f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  *rows.mutable_hidden_states() = FloatTensor({1, 1, kE}, values);
  EXPECT_EQ(Error(Chunk(1, rows)),
            "hidden_states[0, 0, 3]: expected a finite number; got nan; sequence 1 is "
            "unchanged, at 5 tokens");
  EXPECT_EQ(Rows(Chunk(1, Ids(Cut(ids, 5, 3)))), server::Rows(whole, kE, 5, 3));
}

// Parts that were sent after one that failed are not taken for it.
TEST_F(SequenceChunksTest, MaySayWhereTheyStand) {
  Start();
  const std::vector<int64_t> ids = SomeIds(8);
  const std::vector<float> whole = Whole(Ids(ids));
  std::map<uint64_t, v1::EncodeStreamResponse> answers;
  for (int64_t first = 0; first < 6; first += 2) {
    v1::EncodeStreamRequest item =
        Chunk(4, Ids(first == 2 ? std::vector<int64_t>{1, 100} : Cut(ids, first, 2)));
    item.set_id(first);
    item.set_first_token(first);
    ASSERT_TRUE(stream_->Write(item));
  }
  for (int i = 0; i < 3; ++i) {
    v1::EncodeStreamResponse answer;
    ASSERT_TRUE(stream_->Read(&answer));
    answers[answer.id()] = answer;
  }
  EXPECT_FALSE(answers[0].has_error());
  EXPECT_THAT(answers[2].error().message(), HasSubstr("at 2 tokens"));
  EXPECT_EQ(answers[4].error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(answers[4].error().message(),
            "first_token: expected 2 (the tokens of sequence 4 so far); got 4; sequence 4 is "
            "unchanged, at 2 tokens");
  EXPECT_EQ(Rows(Chunk(4, Ids(Cut(ids, 2, 6)))), server::Rows(whole, kE, 2, 6));
}

TEST_F(SequenceChunksTest, TakeNoMoreMemoryThanIsRegistered) {
  TestServerOptions options;
  options.limits.max_registered_bytes = kStateBytes + 100;
  Start(options);
  EXPECT_EQ(kStateBytes, 8704);
  Rows(Chunk(1, Ids({1, 2})));
  Rows(Chunk(1, Ids({3})));
  EXPECT_EQ(Error(Chunk(2, Ids({1})), grpc::StatusCode::RESOURCE_EXHAUSTED),
            "the space for registered memories and sequence states is full (8704 of 8804 bytes, "
            "--max-registered-bytes); this sequence state needs 8704; retry later; sequence 2 "
            "is unchanged, at 0 tokens");
  ASSERT_TRUE(stream_->Write(Chunk(2, Ids({1}))));
  v1::EncodeStreamResponse answer;
  ASSERT_TRUE(stream_->Read(&answer));
  EXPECT_EQ(answer.error().reason(), "registered");
  EXPECT_GT(answer.error().retry_pushback_ms(), 0);
  v1::EncodeStreamRequest last = Chunk(1, Ids({4}));
  last.set_ends(true);
  Rows(last);
  Rows(Chunk(2, Ids({1})));
}

// One part is computed, one is held back, and nothing is read beyond that.
TEST_F(SequenceChunksTest, AreComputedOneAfterTheOther) {
  TestServerOptions options;
  options.gate_closed = true;
  options.limits.stream_window = 16;
  Start(options);
  const std::vector<int64_t> ids = SomeIds(10);
  for (int64_t first = 0; first < 10; first += 2) {
    v1::EncodeStreamRequest item = Chunk(3, Ids(Cut(ids, first, 2)));
    item.set_id(first);
    ASSERT_TRUE(stream_->Write(item));
    if (first == 0) server_->gate().AwaitBlocked();
  }
  stream_->WritesDone();
  EXPECT_EQ(server_->queue().counts().jobs, 0);
  server_->gate().Open();
  std::vector<float> rows;
  v1::EncodeStreamResponse answer;
  for (uint64_t id = 0; stream_->Read(&answer); id += 2) {
    EXPECT_EQ(answer.id(), id);
    EXPECT_EQ(answer.response().execution().batch_requests(), 1);
    const std::vector<float> chunk = ToFloats(answer.response().hidden_states());
    rows.insert(rows.end(), chunk.begin(), chunk.end());
  }
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(rows, Whole(Ids(ids)));
}

TEST_F(SequenceChunksTest, OfDifferentSequencesShareABatch) {
  TestServerOptions options;
  options.gate_closed = true;
  options.limits.stream_window = 16;
  Start(options);
  const std::vector<int64_t> ids = SomeIds(10);
  ASSERT_TRUE(stream_->Write(Chunk(1, Ids({1}))));
  server_->gate().AwaitBlocked();
  for (uint64_t sequence = 2; sequence < 5; ++sequence) {
    v1::EncodeStreamRequest item = Chunk(sequence, Ids(ids));
    item.set_id(sequence);
    ASSERT_TRUE(stream_->Write(item));
  }
  server_->AwaitQueued(3);
  server_->gate().Open();
  stream_->WritesDone();
  v1::EncodeStreamResponse answer;
  std::vector<std::vector<float>> answers;
  while (stream_->Read(&answer)) {
    if (answer.id() == 0) continue;  // the first one, which may come after those of the batch
    EXPECT_EQ(answer.response().execution().batch_requests(), 3);
    answers.push_back(ToFloats(answer.response().hidden_states()));
  }
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(answers, std::vector<std::vector<float>>(3, Whole(Ids(ids))));
}

TEST_F(SequenceChunksTest, ACancelledStreamReleasesThem) {
  StartTwoParts();
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server_->AwaitStreams(0);
  server_->gate().Open();
  Whole(Ids({1}));
  server_->Stop();
  EXPECT_EQ(server_->cross_kv().counts().sequences, 0);
}

TEST_F(SequenceChunksTest, APartThatIsHeldBackIsCountedWhenItsStreamIsCancelled) {
  StartTwoParts();
  while (server_->admission().slots().counts().all() < 2) std::this_thread::yield();
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  server_->ExpectMetrics(HasSubstr(
      "attendant_requests_total{code=\"CANCELLED\",method=\"EncodeStream\",model=\"\"} 1\n"));
  server_->gate().Open();
}

struct BadChunk {
  const char* name;
  std::function<void(v1::EncodeStreamRequest&)> spoil;
  std::string message;
};

void PrintTo(const BadChunk& chunk, std::ostream* out) { *out << chunk.name; }

class SequenceChunkRuleTest : public SequenceChunksTest,
                              public ::testing::WithParamInterface<BadChunk> {};

TEST_P(SequenceChunkRuleTest, Refuses) {
  Start();
  v1::EncodeStreamRequest item = Chunk(5, Ids({1, 2}));
  GetParam().spoil(item);
  EXPECT_EQ(Error(item), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Chunks, SequenceChunkRuleTest,
    ::testing::ValuesIn(std::vector<BadChunk>{
        BadChunk{"Softmax",
                 [](v1::EncodeStreamRequest& item) { item.mutable_request()->set_model("tiny"); },
                 "sequence: not supported by model \"tiny\": its attention is softmax, not "
                 "causal_linear; sequence 5 is unchanged, at 0 tokens"},
        BadChunk{"TwoSequences",
                 [](v1::EncodeStreamRequest& item) {
                   *item.mutable_request()->mutable_token_ids() = IntegerTensor({2, 1}, {1, 2});
                 },
                 "sequence: expected one sequence in a chunk, without padding before a token; got "
                 "2 sequences; sequence 5 is unchanged, at 0 tokens"},
        BadChunk{
            "PaddingBefore",
            [](v1::EncodeStreamRequest& item) {
              *item.mutable_request()->mutable_attention_mask() = IntegerTensor({1, 2}, {0, 1});
            },
            "sequence: expected one sequence in a chunk, without padding before a token; got "
            "padding before a token; sequence 5 is unchanged, at 0 tokens"},
        BadChunk{"Truncation",
                 [](v1::EncodeStreamRequest& item) {
                   item.mutable_request()->set_truncation(v1::TRUNCATE_LEFT);
                 },
                 "truncation: cannot be combined with sequence; sequence 5 is unchanged, at 0 "
                 "tokens"},
        BadChunk{"EndsAlone",
                 [](v1::EncodeStreamRequest& item) {
                   item.set_sequence(0);
                   item.set_ends(true);
                 },
                 "ends: requires sequence"},
        BadChunk{"FirstTokenAlone",
                 [](v1::EncodeStreamRequest& item) {
                   item.set_sequence(0);
                   item.set_first_token(0);
                 },
                 "first_token: requires sequence"},
        BadChunk{"FirstTokenOfNothing",
                 [](v1::EncodeStreamRequest& item) { item.set_first_token(3); },
                 "first_token: expected 0 (the tokens of sequence 5 so far); got 3; sequence 5 "
                 "is unchanged, at 0 tokens"},
        BadChunk{"NoRequest", [](v1::EncodeStreamRequest& item) { item.clear_request(); },
                 "request: expected an EncodeRequest; got none; sequence 5 is unchanged, at 0 "
                 "tokens"}}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(SequenceChunksTest, EndWhereTheTableOfPositionsEnds) {
  Start();
  Rows(Chunk(1, Ids(SomeIds(60))));
  EXPECT_EQ(Error(Chunk(1, Ids(SomeIds(5)))),
            "token_ids: expected at most 64 positions in a sequence; got 65 in sequence 0; "
            "sequence 1 is unchanged, at 60 tokens");
  Rows(Chunk(1, Ids(SomeIds(4))));
}

TEST_F(SequenceChunksTest, AreWhatGetModelTellsOf) {
  Start();
  for (const auto& [name, bytes] :
       std::map<std::string, int64_t>{{"fast", kStateBytes}, {"linear", 0}, {"tiny", 0}}) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_model(name);
    v1::GetModelResponse response;
    ASSERT_TRUE(server_->stub().GetModel(&context, request, &response).ok());
    EXPECT_EQ(response.sequence_state_bytes(), bytes) << name;
  }
}

}  // namespace sequence_chunks_test
}  // namespace attendant::server
