// Tests of head gates, pruned heads, query rows and the forms of attention over a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <thread>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/server/support/encode_calls.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace attention_test {

using ::testing::ElementsAre;

constexpr int64_t kE = 32;
constexpr int64_t kH = 4;
constexpr int64_t kDv = 8;

std::shared_ptr<const ServedModel> Load(const std::string& name, const std::string& pruned) {
  const TempFolder folder;
  folder.Write("prune.json", pruned);
  CheckpointOptions options;
  options.prune_file = folder.File("prune.json");
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:tiny", options);
  auto encoder =
      Encoder::Load(checkpoint->description, *checkpoint->weights, [](int64_t, int64_t) {});
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  return std::make_shared<ServedModel>(name, *encoder);
}

// A causal model whose heads 0 and 1, and 2 and 3, share keys and values.
std::shared_ptr<const ServedModel> LoadCausal() {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:tiny", {});
  ModelDescription& model = checkpoint->description;
  model.layer.attention.key_value_heads = 2;
  model.layer.attention.causal = true;
  test_support::MemoryWeights weights = test_support::RandomWeights(model, 1);
  auto encoder = Encoder::Load(model, weights, [](int64_t, int64_t) {});
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  return std::make_shared<ServedModel>("causal", *encoder);
}

// Serves "whole", "pruned", which lacks heads 1 and 2 in its first layer and all heads in its
// second, and "causal".
TestServerOptions Options() {
  TestServerOptions options;
  options.models["whole"] = Load("whole", "{}");
  options.models["causal"] = LoadCausal();
  options.models["pruned"] = Load("pruned", R"({"0": [1, 2], "1": [0, 1, 2, 3]})");
  return options;
}

class AttentionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer(Options()); }
  static void TearDownTestSuite() { delete server_; }

  static v1::AttendResponse Call(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = server_->Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static v1::EncodeResponse Call(const v1::EncodeRequest& request) {
    return EncodeOk(*server_, request);
  }

  // Two sequences of 4 rows; the second one has a hole and padding on the left.
  template <typename Request>
  static Request Padded(const std::string& model) {
    Request request;
    request.set_model(model);
    *request.mutable_hidden_states() = FloatTensor({2, 4, kE}, SomeValues(8 * kE, 3));
    *request.mutable_attention_mask() = IntegerTensor({2, 4}, {1, 1, 1, 0, 0, 1, 0, 1});
    return request;
  }
  static v1::AttendRequest Attend(const std::string& model = "whole") {
    return Padded<v1::AttendRequest>(model);
  }
  static v1::EncodeRequest Encode(const std::string& model = "whole") {
    return Padded<v1::EncodeRequest>(model);
  }

  inline static TestServer* server_ = nullptr;
};

TEST_F(AttentionTest, AGateOfZeroAnswersWhatThePrunedModelDoes) {
  v1::AttendRequest gated = Attend();
  for (const float gate : {1, 0, 0, 1}) gated.add_head_gates(gate);
  for (const v1::AttendStage stage : {v1::PROJECTED, v1::BLOCK}) {
    v1::AttendRequest pruned = Attend("pruned");
    gated.set_stage(stage);
    pruned.set_stage(stage);
    EXPECT_EQ(ToFloats(Call(gated).output()), ToFloats(Call(pruned).output()));
  }
  v1::EncodeRequest all = Encode();
  for (const float gate : {1, 0, 0, 1, 0, 0, 0, 0}) all.add_head_gates(gate);
  EXPECT_EQ(ToFloats(Call(all).hidden_states()), ToFloats(Call(Encode("pruned")).hidden_states()));
}

TEST_F(AttentionTest, APrunedLayerHasTheContextAndTheAttentionOfItsOwnHeads) {
  v1::AttendRequest whole = Attend(), pruned = Attend("pruned");
  for (v1::AttendRequest* request : {&whole, &pruned}) {
    request->set_return_attention_probabilities(true);
  }
  const v1::AttendResponse all = Call(whole), left = Call(pruned);
  EXPECT_THAT(ShapeOf(left.output()), ElementsAre(2, 4, 2 * kDv));
  EXPECT_THAT(ShapeOf(left.attention_probabilities()), ElementsAre(2, 2, 4, 4));
  const std::vector<float> context = ToFloats(all.output()), own = ToFloats(left.output());
  const std::vector<float> matrices = ToFloats(all.attention_probabilities());
  const std::vector<float> own_matrices = ToFloats(left.attention_probabilities());
  for (int64_t h = 0; h < 2; ++h) {
    const int64_t head = 3 * h;  // heads 0 and 3 are left
    for (int64_t row = 0; row < 8; ++row) {
      EXPECT_EQ(Rows(own, kDv, row * 2 + h, 1), Rows(context, kDv, row * kH + head, 1));
    }
    for (int64_t b = 0; b < 2; ++b) {
      EXPECT_EQ(Rows(own_matrices, 16, b * 2 + h, 1), Rows(matrices, 16, b * kH + head, 1));
    }
  }
}

// Biases and gates are indexed by the head numbers of the checkpoint.
TEST_F(AttentionTest, RequestsSpeakOfAllHeadsOfTheCheckpoint) {
  v1::AttendRequest whole = Attend(), pruned = Attend("pruned");
  for (v1::AttendRequest* request : {&whole, &pruned}) {
    *request->mutable_attention_bias() = FloatTensor({1, kH, 4, 4}, SomeValues(kH * 16, 9));
    for (const float gate : {0.5f, 0.0f, 0.0f, 0.25f}) request->add_head_gates(gate);
    request->set_stage(v1::PROJECTED);
  }
  EXPECT_EQ(ToFloats(Call(whole).output()), ToFloats(Call(pruned).output()));
}

TEST_F(AttentionTest, GetModelNamesTheHeadsThatAreLeft) {
  const auto describe = [&](const std::string& name) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    v1::GetModelResponse response;
    request.set_model(name);
    EXPECT_TRUE(server_->stub().GetModel(&context, request, &response).ok());
    return response;
  };
  EXPECT_EQ(describe("whole").pruned_layers_size(), 0);
  const v1::GetModelResponse pruned = describe("pruned");
  ASSERT_EQ(pruned.pruned_layers_size(), 2);
  EXPECT_EQ(pruned.pruned_layers(0).layer(), 0);
  EXPECT_THAT(pruned.pruned_layers(0).heads(), ElementsAre(0, 3));
  EXPECT_EQ(pruned.pruned_layers(1).layer(), 1);
  EXPECT_THAT(pruned.pruned_layers(1).heads(), ElementsAre());
  EXPECT_EQ(pruned.layer().heads(), kH);
  EXPECT_LT(pruned.weight_bytes(), describe("whole").weight_bytes());
}

TEST_F(AttentionTest, ALayerWithoutHeadsHasNeitherContextNorAttention) {
  v1::AttendRequest request = Attend("pruned");
  request.set_layer(1);
  v1::AttendResponse response;
  EXPECT_EQ(server_->Attend(request, &response).error_message(),
            "stage: CONTEXT not supported by model \"pruned\": the layer's heads are all pruned; "
            "use PROJECTED or BLOCK");
  request.set_stage(v1::PROJECTED);
  EXPECT_THAT(ShapeOf(Call(request).output()), ElementsAre(2, 4, kE));
  request.set_return_attention_probabilities(true);
  EXPECT_EQ(server_->Attend(request, &response).error_message(),
            "return_attention_probabilities: layer 1 not supported by model \"pruned\": the "
            "layer's heads are all pruned");
}

TEST_F(AttentionTest, ProbabilitiesAreThoseBeforeTheGates) {
  v1::AttendRequest request = Attend();
  request.set_return_attention_probabilities(true);
  const v1::AttendResponse free = Call(request);
  for (const float gate : {0.0f, 0.5f, 1.0f, 0.0f}) request.add_head_gates(gate);
  const v1::AttendResponse gated = Call(request);
  EXPECT_EQ(gated.attention_probabilities().data(), free.attention_probabilities().data());
  const std::vector<float> before = ToFloats(free.output()), after = ToFloats(gated.output());
  for (size_t i = 0; i < before.size(); ++i) {
    const float gate = request.head_gates(static_cast<int>(i % kE / kDv));
    EXPECT_EQ(after[i], before[i] * gate);
  }
}

TEST_F(AttentionTest, QueryRowsAreThoseOfTheFullAnswerInTheOrderAskedFor) {
  const std::vector<int64_t> rows = {7, 0, 3, 7, 5};  // 3 is padding
  for (const v1::AttendStage stage : {v1::CONTEXT, v1::PROJECTED, v1::BLOCK}) {
    v1::AttendRequest request = Attend();
    request.set_stage(stage);
    const std::vector<float> all = ToFloats(Call(request).output());
    request.mutable_query_rows()->Add(rows.begin(), rows.end());
    const v1::AttendResponse response = Call(request);
    EXPECT_THAT(ShapeOf(response.output()), ElementsAre(5, kE));
    const std::vector<float> some = ToFloats(response.output());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(Rows(some, kE, static_cast<int64_t>(i), 1), Rows(all, kE, rows[i], 1)) << rows[i];
    }
  }
}

TEST_F(AttentionTest, QueryRowsOfEncodeLeaveEverythingElseWhole) {
  v1::EncodeRequest request = Encode();
  request.set_return_pooled(true);
  request.set_pooling(v1::LAST_TOKEN);
  const v1::EncodeResponse all = Call(request);
  request.add_query_rows(5);
  request.add_query_rows(1);
  const v1::EncodeResponse some = Call(request);
  EXPECT_THAT(ShapeOf(some.hidden_states()), ElementsAre(2, kE));
  const std::vector<float> rows = ToFloats(all.hidden_states()),
                           own = ToFloats(some.hidden_states());
  EXPECT_EQ(Rows(own, kE, 0, 1), Rows(rows, kE, 5, 1));
  EXPECT_EQ(Rows(own, kE, 1, 1), Rows(rows, kE, 1, 1));
  EXPECT_EQ(some.pooled().data(), all.pooled().data());
  request.add_intermediate_layers(1);
  request.add_attention_layers(1);
  const v1::EncodeResponse more = Call(request);
  EXPECT_EQ(more.intermediate(0).tensor().data(), all.hidden_states().data());
  EXPECT_THAT(ShapeOf(more.attention_probabilities(0).tensor()), ElementsAre(2, kH, 4, 4));
  EXPECT_EQ(more.hidden_states().data(), some.hidden_states().data());
}

TEST_F(AttentionTest, PackedQueryRowsCountTokens) {
  v1::AttendRequest request = AttendOf("whole", FloatTensor({5, kE}, SomeValues(5 * kE, 5)));
  for (const int64_t length : {2, 3}) request.add_lengths(length);
  const std::vector<float> all = ToFloats(Call(request).output());
  request.add_query_rows(4);
  EXPECT_EQ(ToFloats(Call(request).output()), Rows(all, kE, 4, 1));
}

TEST_F(AttentionTest, TheMeanOverTheHeads) {
  v1::AttendRequest request = Attend();
  request.set_return_attention_probabilities(true);
  const std::vector<float> heads = ToFloats(Call(request).attention_probabilities());
  request.set_attention_form(v1::HEAD_MEAN);
  const v1::AttendResponse response = Call(request);
  EXPECT_THAT(ShapeOf(response.attention_probabilities()), ElementsAre(2, 4, 4));
  const std::vector<float> mean = ToFloats(response.attention_probabilities());
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 16; ++i) {
      float sum = 0;
      for (int64_t h = 0; h < kH; ++h) sum += heads[(b * kH + h) * 16 + i];
      EXPECT_FLOAT_EQ(mean[b * 16 + i], sum / kH);
    }
  }
}

TEST_F(AttentionTest, TheLargestKeysOfEachQuery) {
  v1::EncodeRequest request = Encode();
  request.add_attention_layers(1);
  request.add_attention_layers(0);
  const v1::EncodeResponse all = Call(request);
  request.set_attention_form(v1::TOP_KEYS);
  request.set_attention_top_k(3);
  const v1::EncodeResponse top = Call(request);
  ASSERT_EQ(top.attention_keys_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(top.attention_keys(i).layer(), top.attention_probabilities(i).layer());
    EXPECT_EQ(top.attention_keys(i).tensor().dtype(), v1::INT32);
    EXPECT_THAT(ShapeOf(top.attention_keys(i).tensor()), ElementsAre(2, kH, 4, 3));
    const std::vector<float> values = ToFloats(top.attention_probabilities(i).tensor());
    const std::vector<float> rows = ToFloats(all.attention_probabilities(i).tensor());
    const std::string& bytes = top.attention_keys(i).tensor().data();
    std::vector<int32_t> keys(values.size());
    ASSERT_EQ(bytes.size(), keys.size() * sizeof(int32_t));
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(keys.data()));
    for (int64_t row = 0; row < 2 * kH * 4; ++row) {
      const bool second = row >= kH * 4;
      const int64_t query = row % 4;
      const bool padding = second ? query % 2 == 0 : query == 3;
      const int64_t kept = padding ? 0 : second ? 2 : 3;
      std::vector<float> sorted = Rows(rows, 4, row, 1);
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      for (int64_t k = 0; k < 3; ++k) {
        const int32_t key = keys[row * 3 + k];
        EXPECT_EQ(values[row * 3 + k], k < kept ? sorted[k] : 0.0f);
        EXPECT_EQ(key == -1, k >= kept);
        if (key < 0) continue;
        EXPECT_EQ(rows[row * 4 + key], values[row * 3 + k]);
      }
    }
  }
}

// Equal probabilities are sorted by ascending column, and NaN comes last.
TEST_F(AttentionTest, TheLargestKeysHaveAnOrder) {
  std::vector<float> values(3 * kE, 0.5f);
  v1::AttendRequest request = AttendOf("whole", FloatTensor({1, 3, kE}, values));
  request.set_return_attention_probabilities(true);
  request.set_attention_form(v1::TOP_KEYS);
  request.set_attention_top_k(2);
  const auto keys = [&] {
    const std::string bytes = Call(request).attention_keys().data();
    std::vector<int32_t> read(bytes.size() / sizeof(int32_t));
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(read.data()));
    return std::vector<int32_t>(read.begin(), read.begin() + 2);
  };
  EXPECT_THAT(keys(), ElementsAre(0, 1));
  values[0] = std::numeric_limits<float>::quiet_NaN();
  *request.mutable_hidden_states() = FloatTensor({1, 3, kE}, values);
  EXPECT_EQ(keys().size(), 2u);
}

TEST_F(AttentionTest, WeightedValuesAddUpToTheContext) {
  for (const std::string model : {"whole", "pruned", "causal"}) {
    v1::AttendRequest request = Attend(model);
    request.set_return_weighted_values(true);
    const v1::AttendResponse response = Call(request);
    const int64_t heads = model == "pruned" ? 2 : kH;
    EXPECT_FALSE(response.has_attention_probabilities());
    EXPECT_THAT(ShapeOf(response.weighted_values()), ElementsAre(2, heads, 4, 4, kDv));
    const std::vector<float> weighted = ToFloats(response.weighted_values());
    const std::vector<float> context = ToFloats(response.output());
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t s = 0; s < 4; ++s) {
          for (int64_t i = 0; i < kDv; ++i) {
            float sum = 0;
            for (int64_t t = 0; t < 4; ++t) {
              sum += weighted[((((b * heads + h) * 4 + t) * 4) + s) * kDv + i];
            }
            EXPECT_NEAR(sum, context[((b * 4 + s) * heads + h) * kDv + i], 1e-5);
          }
        }
      }
    }
  }
}

TEST_F(AttentionTest, CausalLayersTakeNoMemory) {
  v1::AttendRequest request = Attend("causal");
  *request.mutable_memory()->mutable_hidden_states() =
      FloatTensor({1, 3, kE}, SomeValues(3 * kE, 7));
  v1::AttendResponse response;
  EXPECT_EQ(server_->Attend(request, &response).error_message(),
            "memory: not supported by this layer: its queries attend only to earlier tokens of "
            "their own sequence");
}

TEST_F(AttentionTest, WeightedValuesCountAgainstTheAnswersLimit) {
  TestServerOptions options = Options();
  options.limits.max_answer_bytes = 4096;
  TestServer small(std::move(options));
  v1::AttendRequest request = Attend();
  v1::AttendResponse response;
  EXPECT_TRUE(small.Attend(request, &response).ok());
  request.set_return_weighted_values(true);
  EXPECT_EQ(small.Attend(request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// One memory of 3 rows for both sequences; its second row is padding.
TEST_F(AttentionTest, FormsGatesAndRowsOfAttentionToAMemory) {
  v1::AttendRequest request = Attend();
  *request.mutable_memory()->mutable_hidden_states() =
      FloatTensor({1, 3, kE}, SomeValues(3 * kE, 7));
  *request.mutable_memory()->mutable_attention_mask() = IntegerTensor({1, 3}, {1, 0, 1});
  request.set_return_attention_probabilities(true);
  const v1::AttendResponse all = Call(request);
  EXPECT_THAT(ShapeOf(all.attention_probabilities()), ElementsAre(2, kH, 4, 3));
  const std::vector<float> heads = ToFloats(all.attention_probabilities());

  request.set_attention_form(v1::HEAD_MEAN);
  const v1::AttendResponse mean = Call(request);
  EXPECT_THAT(ShapeOf(mean.attention_probabilities()), ElementsAre(2, 4, 3));
  float sum = 0;  // for the last query and key
  for (int64_t h = 0; h < kH; ++h) sum += heads[((kH + h) * 4 + 3) * 3 + 2];
  EXPECT_FLOAT_EQ(ToFloats(mean.attention_probabilities()).back(), sum / kH);

  request.set_attention_form(v1::TOP_KEYS);
  request.set_attention_top_k(3);
  const v1::AttendResponse top = Call(request);
  EXPECT_THAT(ShapeOf(top.attention_keys()), ElementsAre(2, kH, 4, 3));
  int32_t keys[3];
  std::copy_n(top.attention_keys().data().data(), sizeof(keys), reinterpret_cast<char*>(keys));
  EXPECT_THAT(keys, ElementsAre(heads[0] < heads[2] ? 2 : 0, heads[0] < heads[2] ? 0 : 2, -1));

  request.set_return_attention_probabilities(false);
  request.clear_attention_form();
  request.clear_attention_top_k();
  for (const float gate : {0.0f, 1.0f, 1.0f, 0.5f}) request.add_head_gates(gate);
  request.add_query_rows(5);
  std::vector<float> expected = Rows(ToFloats(all.output()), kE, 5, 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] *= request.head_gates(static_cast<int>(i / kDv));
  }
  EXPECT_EQ(ToFloats(Call(request).output()), expected);

  request.set_return_weighted_values(true);
  v1::AttendResponse response;
  EXPECT_EQ(server_->Attend(request, &response).error_message(),
            "return_weighted_values: cannot be combined with memory or memory_handle");
}

// Each job of one batch has gates and rows of its own.
TEST_F(AttentionTest, RequestsWithGatesOfTheirOwnShareABatch) {
  TestServerOptions options = Options();
  options.gate_closed = true;
  TestServer server(std::move(options));
  std::vector<v1::EncodeRequest> requests(3, Encode());
  for (const float gate : {0.0f, 0.5f, 1.0f, 0.25f}) requests[1].add_head_gates(gate);
  requests[2].add_query_rows(6);
  requests[2].add_query_rows(1);
  std::vector<v1::EncodeResponse> responses(3);
  std::vector<std::thread> calls;
  calls.emplace_back([&] { EXPECT_TRUE(server.Encode(requests[0], &responses[0]).ok()); });
  server.gate().AwaitBlocked();
  for (int i : {1, 2}) {
    calls.emplace_back([&, i] { EXPECT_TRUE(server.Encode(requests[i], &responses[i]).ok()); });
  }
  server.AwaitQueued(2);
  server.gate().Open();
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(responses[1].execution().batch_requests(), 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(responses[i].hidden_states().data(), Call(requests[i]).hidden_states().data()) << i;
  }
}

}  // namespace attention_test
}  // namespace attendant::server
