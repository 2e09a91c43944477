// Tests of the cache of results, over a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/support/text_models.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace cache_test {

using ::testing::HasSubstr;

constexpr int64_t kE = 32;

// TextModels(), and "words", which has sparse vectors, "images", which takes pixels, "prompted",
// which leaves prompts out of its vectors, and "parts", which takes sequences in chunks.
TestServerOptions Serving(int64_t cache_bytes = int64_t{1} << 20) {
  TestServerOptions options;
  options.models = TextModels();
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.pooling = {.modes = {PoolingMode::kMean}, .excludes_prompt = true};
  options.models["prompted"] = WithTexts(*ModelOf("prompted", model).at("prompted"));
  model.layer.attention.kind = AttentionKind::kCausalLinear;
  options.models["parts"] = ModelOf("parts", model).at("parts");
  model.layer.attention.kind = AttentionKind::kSoftmax;
  model.pooling.reset();
  model.vocabulary_head = {.width = 16};
  options.models["words"] = WithTexts(*ModelOf("words", model).at("words"));
  model.vocabulary_head.reset();
  model.embeddings.reset();
  model.patch_embedding = {.feature_width = 12,
                           .has_class = true,
                           .positions = 5,
                           .needs_every = true,
                           .image_size = 4,
                           .patch_size = 2};
  options.models["images"] = ModelOf("images", model).at("images");
  options.cache_bytes = cache_bytes;
  options.limits.trusted_proxies = {*ParseNetwork("127.0.0.1")};
  return options;
}

TestServerOptions WithoutCache() { return Serving(0); }

v1::EncodeRequest Pooled(const std::string& model = "tiny") {
  v1::EncodeRequest request;
  request.set_model(model);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  return request;
}

// The packed sequences.
v1::EncodeRequest Ids(const std::vector<std::vector<int64_t>>& sequences) {
  v1::EncodeRequest request = Pooled();
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& ids : sequences) {
    request.add_lengths(static_cast<int64_t>(ids.size()));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  *request.mutable_token_ids() = IntegerTensor({static_cast<int64_t>(all.size())}, all);
  return request;
}

v1::EncodeRequest Texts(const std::vector<std::string>& texts) {
  v1::EncodeRequest request = Pooled();
  for (const std::string& text : texts) request.add_texts(text);
  return request;
}

class CacheTest : public ::testing::Test {
 protected:
  explicit CacheTest(const TestServerOptions& options = Serving()) : server_(options) {}

  static v1::EncodeResponse Call(TestServer& server, const v1::EncodeRequest& request,
                                 const std::string& client = "") {
    grpc::ClientContext context;
    if (!client.empty()) context.AddMetadata("x-forwarded-for", client);
    v1::EncodeResponse response;
    const grpc::Status status = server.stub().Encode(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  // Expects the bits of a server without a cache, and returns how many sequences were found.
  int Hits(const v1::EncodeRequest& request, const std::string& client = "") {
    const int batches = server_.gate().passed();
    v1::EncodeResponse expected = Call(plain_, request);
    v1::EncodeResponse response = Call(server_, request, client);
    const v1::Execution execution = response.execution();
    EXPECT_EQ(execution.tokens(), expected.execution().tokens());
    EXPECT_EQ(execution.truncated_tokens(), expected.execution().truncated_tokens());
    EXPECT_EQ(execution.compute_type(), expected.execution().compute_type());
    EXPECT_EQ(execution.compute_dtype(), expected.execution().compute_dtype());
    EXPECT_EQ(expected.execution().cached_sequences(), 0);
    const v1::Tensor& pooled = response.pooled();
    const int64_t sequences =
        request.return_pooled() ? pooled.shape(0) : response.sparse().counts_size();
    if (execution.cached_sequences() == sequences) {
      EXPECT_EQ(server_.gate().passed(), batches);
      EXPECT_EQ(execution.batch_requests(), 0);
    } else {
      EXPECT_GT(server_.gate().passed(), batches);
    }
    response.clear_execution();
    expected.clear_execution();
    EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
    return execution.cached_sequences();
  }

  int64_t LookedUp(CacheKind kind) {
    const auto [hits, misses] = server_.cache().counts().lookups[static_cast<size_t>(kind)];
    return hits + misses;
  }

  TestServer server_, plain_{WithoutCache()};
};

TEST_F(CacheTest, ReturnsTheSameBitsWithoutComputing) {
  const v1::EncodeRequest request = Ids({{1, 2, 3}, {4, 5}, {6}});
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 3);
  const CacheCounts counts = server_.cache().counts();
  EXPECT_EQ(counts.entries, 3);
  EXPECT_EQ(counts.bytes, 3 * (ResultCache::kEntryBytes + kE * 4));
  EXPECT_EQ(counts.lookups[0].hits, 3);
  EXPECT_EQ(counts.lookups[0].misses, 3);
}

TEST_F(CacheTest, ComputesTheSequencesThatAreMissing) {
  EXPECT_EQ(Hits(Ids({{1, 2, 3}, {4, 5}})), 0);
  EXPECT_EQ(Hits(Ids({{7, 8}, {4, 5}, {9}, {1, 2, 3}, {7}})), 2);
  EXPECT_EQ(Hits(Ids({{9}, {7}, {7, 8}, {1, 2, 3}})), 4);
  EXPECT_EQ(server_.gate().passed(), 2);
}

TEST_F(CacheTest, ComputesEqualSequencesOnce) {
  EXPECT_EQ(Hits(Ids({{1, 2}, {3}, {1, 2}, {1, 2}, {3}})), 3);
  EXPECT_EQ(Hits(Ids({{1, 2}, {3}, {1, 2}})), 3);
  EXPECT_EQ(server_.cache().counts().entries, 2);
  // Each was looked up once, so that an eviction in between cannot lose it.
  EXPECT_EQ(server_.cache().counts().lookups[0].hits, 2);
}

TEST_F(CacheTest, FindsASequenceWhateverIsAroundIt) {
  EXPECT_EQ(Hits(Ids({{1, 2, 3}, {4, 5}})), 0);
  v1::EncodeRequest padded = Pooled();
  *padded.mutable_token_ids() = IntegerTensor({2, 4}, {4, 5, 0, 0, 1, 2, 3, 0}, v1::INT32);
  *padded.mutable_attention_mask() = IntegerTensor({2, 4}, {1, 1, 0, 0, 1, 1, 1, 0}, v1::INT32);
  EXPECT_EQ(Hits(padded), 2);
  padded.set_layout(v1::SEQUENCE_FIRST);
  *padded.mutable_token_ids() = IntegerTensor({4, 2}, {4, 1, 5, 2, 0, 3, 0, 0});
  EXPECT_EQ(Hits(padded), 2);
}

// Each is another result than that of the request it is made of.
TEST_F(CacheTest, TellsApartAllThatAVectorDependsOn) {
  using Change = std::function<void(v1::EncodeRequest&)>;
  const std::map<std::string, Change> changes = {
      {"ids",
       [](auto& r) {
         *r.mutable_token_ids() = IntegerTensor({4}, {1, 2, 4, 3});
       }},
      {"length",
       [](auto& r) {
         *r.mutable_token_ids() = IntegerTensor({3}, {1, 2, 3});
         r.set_lengths(0, 3);
       }},
      {"types",
       [](auto& r) {
         *r.mutable_token_type_ids() = IntegerTensor({4}, {0, 0, 1, 1});
       }},
      {"positions",
       [](auto& r) {
         *r.mutable_position_ids() = IntegerTensor({4}, {0, 1, 2, 4});
       }},
      {"dtype", [](auto& r) { r.set_output_dtype(v1::BFLOAT16); }},
      {"half", [](auto& r) { r.set_output_dtype(v1::FLOAT16); }},
      {"first token", [](auto& r) { r.set_pooling(v1::FIRST_TOKEN); }},
      {"mode", [](auto& r) { r.set_pooling(v1::MAX); }},
      {"normalize", [](auto& r) { r.set_normalize_pooled(true); }},
      {"prompt",
       [](auto& r) {
         r.set_pooling(v1::MEAN);
         r.add_prompt_tokens(2);
       }},
      {"layers", [](auto& r) { r.mutable_layers()->set_count(1); }},
      {"gates", [](auto& r) { r.mutable_head_gates()->Resize(4, 0.5f); }},
      {"other gates", [](auto& r) { r.mutable_head_gates()->Resize(4, 0.25f); }},
      {"model", [](auto& r) { r.set_model("prompted"); }},
  };
  const v1::EncodeRequest base = Ids({{1, 2, 3, 4}});
  EXPECT_EQ(Hits(base), 0);
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    v1::EncodeRequest request = base;
    change(request);
    EXPECT_EQ(Hits(request), 0);
    EXPECT_EQ(Hits(request), 1);
  }
  EXPECT_EQ(Hits(base), 1);
}

TEST_F(CacheTest, KeepsTokensApartThatAHoleSeparates) {
  v1::EncodeRequest request = Pooled();
  *request.mutable_token_ids() = IntegerTensor({1, 4}, {1, 2, 9, 3});
  *request.mutable_attention_mask() = IntegerTensor({1, 4}, {1, 1, 0, 1});
  EXPECT_EQ(Hits(Ids({{1, 2, 3}})), 0);
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 1);
}

TEST_F(CacheTest, HasSequencesWithoutTokens) {
  v1::EncodeRequest request = Ids({{}, {1}, {}});
  EXPECT_EQ(Hits(request), 1);
  EXPECT_EQ(Hits(request), 3);
}

TEST_F(CacheTest, HasHiddenStatesAndFeatures) {
  const std::vector<float> rows = SomeValues(5 * kE, 3);
  v1::EncodeRequest states = Pooled();
  *states.mutable_hidden_states() = FloatTensor({5, kE}, rows);
  states.add_lengths(2);
  states.add_lengths(3);
  EXPECT_EQ(Hits(states), 0);
  EXPECT_EQ(Hits(states), 2);
  *states.mutable_hidden_states() =
      FloatTensor({5, kE}, RoundedTo(v1::BFLOAT16, rows), v1::BFLOAT16);
  states.set_output_dtype(v1::FLOAT32);
  EXPECT_EQ(Hits(states), 0);
  EXPECT_EQ(Hits(states), 2);

  v1::EncodeRequest features = Pooled("patches");
  features.set_pooling(v1::MEAN);
  std::vector<float> values = SomeValues(3 * 3 * kE, 4);
  *features.mutable_features() = FloatTensor({3, 3, kE}, values);
  EXPECT_EQ(Hits(features), 0);
  EXPECT_EQ(Hits(features), 3);
  values[4 * kE] += 1;  // of the second sequence
  *features.mutable_features() = FloatTensor({3, 3, kE}, values);
  EXPECT_EQ(Hits(features), 2);
}

TEST_F(CacheTest, HasThePixelsOfImages) {
  v1::EncodeRequest request = Pooled("images");
  request.set_pooling(v1::FIRST_TOKEN);
  std::vector<float> pixels = SomeValues(3 * 48, 4);
  *request.mutable_features() = FloatTensor({3, 3, 4, 4}, pixels);
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 3);
  pixels[48 + 20] += 1;
  *request.mutable_features() = FloatTensor({3, 3, 4, 4}, pixels);
  EXPECT_EQ(Hits(request), 2);
}

TEST_F(CacheTest, HasClassScores) {
  v1::EncodeRequest request = Ids({{4, 5, 6}, {7}});
  request.set_model("counting");
  request.set_pooling(v1::CLASSIFIER);
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 2);
  request.set_pooling(v1::MEAN);
  EXPECT_EQ(Hits(request), 0);
}

TEST_F(CacheTest, HasSparseVectorsAlsoBesidePooledOnes) {
  v1::EncodeRequest request = Ids({{4, 5, 6}, {7}, {}});
  request.set_model("words");
  request.set_pooling(v1::MEAN);
  request.set_return_sparse(true);
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 3);
  request = Ids({{7}, {8, 9}, {4, 5, 6}});
  request.set_model("words");
  request.set_pooling(v1::MEAN);
  request.set_return_sparse(true);
  request.set_output_dtype(v1::FLOAT32);
  EXPECT_EQ(Hits(request), 2);
  request.set_return_pooled(false);
  request.set_pooling(v1::MODEL_POOLING);
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 3);
  request.set_output_dtype(v1::BFLOAT16);
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 3);
}

// Rows of tokens and attention are computed anew, and nothing is looked for.
TEST_F(CacheTest, HasNothingElse) {
  using Change = std::function<void(v1::EncodeRequest&)>;
  const std::vector<Change> changes = {
      [](auto& r) { r.set_omit_hidden_states(false); },
      [](auto& r) { r.add_intermediate_layers(0); },
      [](auto& r) {
        r.add_attention_layers(1);
        *r.mutable_token_ids() = IntegerTensor({1, 3}, {1, 2, 3});
      },
      [](auto& r) {
        *r.mutable_attention_bias() = FloatTensor({1, 1, 3, 3}, SomeValues(9, 1));
        *r.mutable_token_ids() = IntegerTensor({1, 3}, {1, 2, 3});
      },
  };
  for (const Change& change : changes) {
    v1::EncodeRequest request = Ids({{1, 2, 3}});
    change(request);
    EXPECT_EQ(Hits(request), 0);
    EXPECT_EQ(Hits(request), 0);
  }
  EXPECT_EQ(LookedUp(CacheKind::kVectors), 0);
  EXPECT_EQ(server_.cache().counts().entries, 0);
}

TEST_F(CacheTest, KeepsClientsApart) {
  const v1::EncodeRequest request = Ids({{1, 2, 3}});
  EXPECT_EQ(Hits(request, "10.0.0.1"), 0);
  EXPECT_EQ(Hits(request, "10.0.0.2"), 0);
  EXPECT_EQ(Hits(request, "10.0.0.1"), 1);
  EXPECT_EQ(Hits(request, "10.0.0.2"), 1);
  const v1::EncodeRequest texts = Texts({"hello"});
  EXPECT_EQ(Hits(texts, "10.0.0.1"), 0);
  EXPECT_EQ(Hits(texts, "10.0.0.2"), 0);
  EXPECT_EQ(server_.cache().counts().lookups[1].hits, 0);
  EXPECT_EQ(Hits(texts, "10.0.0.1"), 1);
  EXPECT_EQ(server_.cache().counts().lookups[1].hits, 1);
}

TEST_F(CacheTest, ANewVersionHasNoneOfTheOldOne) {
  const v1::EncodeRequest request = Texts({"hello world"});
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 1);
  for (TestServer* server : {&server_, &plain_}) {
    ServedModels models = *server->models().Snapshot();
    models["tiny"] = models.at("prompted");
    server->models().Replace(std::move(models));
  }
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 1);
}

TEST(UniqueNumberTest, IsOfOneObject) {
  const ServedModel& model = *TestModels().at("tiny");
  const ServedModel copy = model;
  EXPECT_NE(copy.number.value(), model.number.value());
  EXPECT_NE(copy.number.value(), TestModels().at("bare")->number.value());
}

TEST_F(CacheTest, KnowsTheTokensOfTexts) {
  const v1::EncodeRequest request = Texts({"Hello world", "good", ""});
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(LookedUp(CacheKind::kTokens), 3);
  EXPECT_EQ(Hits(request), 3);
  EXPECT_EQ(server_.cache().counts().lookups[1].hits, 3);
  EXPECT_EQ(Hits(Texts({"good", "world"})), 1);
  // The tokens are what a vector is made of, so ids are as good as their text.
  EXPECT_EQ(Hits(Texts({"HELLO world"})), 1);
  // Rows of tokens are computed, but their texts are known.
  v1::EncodeRequest rows = request;
  rows.set_omit_hidden_states(false);
  EXPECT_EQ(Hits(rows), 0);
  EXPECT_EQ(server_.cache().counts().lookups[1].hits, 3 + 1 + 3);
  rows.set_return_tokens(true);  // with their places, which are not kept
  const int64_t before = LookedUp(CacheKind::kTokens);
  EXPECT_EQ(Hits(rows), 0);
  EXPECT_EQ(LookedUp(CacheKind::kTokens), before);
}

TEST_F(CacheTest, KeepsTextsApartThatAreCutOrPromptedDifferently) {
  const std::string text = "hello hello hello hello hello hello world good bye";
  v1::EncodeRequest request = Texts({text});
  for (const v1::Truncation truncation :
       {v1::NO_TRUNCATION, v1::TRUNCATE_RIGHT, v1::TRUNCATE_LEFT}) {
    request.set_truncation(truncation);
    EXPECT_EQ(Hits(request), 0);
    EXPECT_EQ(Hits(request), 1);
  }
  request = Texts({"hello"});
  EXPECT_EQ(Hits(request), 0);
  request.set_prompt_name("query");
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 1);
  request.clear_prompt_name();
  request.set_prompt("good ");
  EXPECT_EQ(Hits(request), 0);
  request.clear_prompt();
  request.add_text_pairs("world");
  EXPECT_EQ(Hits(request), 0);
  EXPECT_EQ(Hits(request), 1);
  request.set_text_pairs(0, "good");
  EXPECT_EQ(Hits(request), 0);
}

TEST_F(CacheTest, LeavesPromptsOutOfVectorsAsTheModelDoes) {
  v1::EncodeRequest request = Texts({"hello world", "good"});
  request.set_model("prompted");
  request.set_prompt_name("query");
  EXPECT_EQ(Hits(request), 0);
  request.add_texts("world");
  EXPECT_EQ(Hits(request), 2);
  EXPECT_EQ(Hits(request), 3);
}

TEST_F(CacheTest, RefusedTextsAreRefusedAgain) {
  std::string text;
  for (int i = 0; i < 70; ++i) text += "hello ";
  const v1::EncodeRequest request = Texts({text});
  for (int i = 0; i < 2; ++i) {
    v1::EncodeResponse response;
    const grpc::Status status = server_.Encode(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("texts[0]: expected at most 64 tokens"));
  }
  EXPECT_EQ(server_.cache().counts().lookups[1].hits, 1);
  EXPECT_EQ(LookedUp(CacheKind::kVectors), 0);
}

TEST_F(CacheTest, HasTheItemsOfStreams) {
  EXPECT_EQ(Hits(Ids({{1, 2}, {3}})), 0);
  grpc::ClientContext context;
  const auto stream = server_.stub().EncodeStream(&context);
  const auto ask = [&](const v1::EncodeRequest& request) {
    v1::EncodeStreamRequest item;
    item.set_id(7);
    *item.mutable_request() = request;
    EXPECT_TRUE(stream->Write(item));
    v1::EncodeStreamResponse response;
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_FALSE(response.has_error()) << response.error().message();
    return response.response();
  };
  for (int round = 0; round < 3; ++round) {
    const v1::EncodeRequest request = Ids({{3}, {1, 2}, {5}});
    const v1::EncodeResponse response = ask(request);
    EXPECT_EQ(response.execution().cached_sequences(), round == 0 ? 2 : 3);
    EXPECT_EQ(response.pooled().data(), Call(plain_, request).pooled().data());
  }
  EXPECT_EQ(ask(Texts({"hello"})).execution().cached_sequences(), 0);
  EXPECT_EQ(ask(Texts({"hello"})).execution().cached_sequences(), 1);
  // Many at a time: each hit is answered where it is read.
  for (uint64_t id = 0; id < 50; ++id) {
    v1::EncodeStreamRequest item;
    item.set_id(id);
    *item.mutable_request() = Ids({{1, 2}});
    EXPECT_TRUE(stream->Write(item));
  }
  EXPECT_TRUE(stream->WritesDone());
  v1::EncodeStreamResponse response;
  for (uint64_t id = 0; id < 50; ++id) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.id(), id);
    EXPECT_EQ(response.response().execution().cached_sequences(), 1);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

// A sequence that comes in chunks has another state each time.
TEST_F(CacheTest, HasNoChunksOfSequences) {
  grpc::ClientContext context;
  const auto stream = server_.stub().EncodeStream(&context);
  std::vector<std::string> vectors;
  for (int chunk = 0; chunk < 2; ++chunk) {
    v1::EncodeStreamRequest item;
    *item.mutable_request() = Ids({{1, 2}});
    item.mutable_request()->set_model("parts");
    item.set_sequence(1);
    EXPECT_TRUE(stream->Write(item));
    v1::EncodeStreamResponse response;
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_FALSE(response.has_error()) << response.error().message();
    vectors.push_back(response.response().pooled().data());
  }
  EXPECT_NE(vectors[0], vectors[1]);
  EXPECT_EQ(LookedUp(CacheKind::kVectors), 0);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// What the cache has is returned while the queue is full and every instance is taken.
TEST_F(CacheTest, NeedsNoPlaceInTheQueue) {
  TestServerOptions options = Serving();
  options.queue.max_jobs = 1;
  TestServer server(options);
  const v1::EncodeRequest known = Ids({{1, 2}}), unknown = Ids({{3, 4}});
  Call(server, known);
  server.gate().Close();
  std::vector<std::thread> calls;
  const auto call_from = [&](const std::string& client) {
    calls.emplace_back([&server, &unknown, client] { Call(server, unknown, client); });
  };
  call_from("10.0.0.1");
  server.gate().AwaitBlocked();
  call_from("10.0.0.2");
  server.AwaitQueued(1);
  v1::EncodeResponse refused;
  EXPECT_EQ(server.Encode(unknown, &refused).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Call(server, known).execution().cached_sequences(), 1);
  server.gate().Open();
  for (std::thread& call : calls) call.join();
}

TEST_F(CacheTest, StaysWithinItsBytes) {
  constexpr int64_t kEntry = ResultCache::kEntryBytes + kE * 4;
  TestServerOptions options = Serving(2 * kEntry);
  TestServer server(options);
  const auto hits = [&](const v1::EncodeRequest& request) {
    return Call(server, request).execution().cached_sequences();
  };
  EXPECT_EQ(hits(Ids({{1}, {2}, {3}})), 0);
  EXPECT_EQ(server.cache().counts().bytes, 2 * kEntry);
  EXPECT_EQ(hits(Ids({{2}})), 1);
  EXPECT_EQ(hits(Ids({{1}})), 0);  // takes the place of {3}
  EXPECT_EQ(hits(Ids({{2}})), 1);
  EXPECT_EQ(hits(Ids({{3}})), 0);
  EXPECT_EQ(server.cache().counts().bytes, 2 * kEntry);
}

TEST_F(CacheTest, IsOffUnlessItHasBytes) {
  EXPECT_EQ(Call(plain_, Ids({{1}})).execution().cached_sequences(), 0);
  EXPECT_EQ(Call(plain_, Ids({{1}})).execution().cached_sequences(), 0);
  EXPECT_EQ(plain_.gate().passed(), 2);
}

class SlicedCacheTest : public CacheTest {
 protected:
  static TestServerOptions InSlices() {
    TestServerOptions options = Serving();
    options.limits.max_batch_seconds = absl::Nanoseconds(1);
    return options;
  }
  SlicedCacheTest() : CacheTest(InSlices()) {}
};

TEST_F(SlicedCacheTest, KeepsWhatIsComputedInSeveralBatches) {
  EXPECT_EQ(Hits(Ids({{1, 2}, {3}, {4}})), 0);
  EXPECT_EQ(server_.gate().passed(), 3);
  EXPECT_EQ(Hits(Ids({{5}, {3}, {6, 7}, {1, 2}, {8}})), 2);
  EXPECT_EQ(server_.gate().passed(), 6);
  EXPECT_EQ(Hits(Ids({{5}, {3}, {6, 7}, {1, 2}, {8}})), 5);
}

}  // namespace cache_test
}  // namespace attendant::server
