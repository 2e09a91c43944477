// Tests of "BERT self-attention source walk": what BERT puts after the self-attention of the
// article, namely the rest of the block, the layer, and a stack of layers.
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace bert_source_walk_layers_test {

using attendant::test_support::Generate;
using nlohmann::json;

// Returns the tensors of one layer, under the checkpoint's names.
std::vector<TestTensor> LayerTensors() {
  const std::string layer = "encoder.layer.0.";
  std::vector<TestTensor> tensors;
  int64_t seed = 2;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    const int64_t outputs = shape[0];
    if (shape.size() == 1) {
      std::vector<float> gamma = Generate(outputs, seed++);
      for (float& element : gamma) element = 1 + element / 4;
      tensors.push_back(WithValues(layer + name + ".weight", {outputs}, gamma));
    } else {
      tensors.push_back(Generated(layer + name + ".weight", std::move(shape), seed++));
    }
    tensors.push_back(Generated(layer + name + ".bias", {outputs}, seed++));
  };
  for (const char* part : {"query", "key", "value"}) {
    add(absl::StrCat("attention.self.", part), {4, 4});
  }
  add("attention.output.dense", {4, 4});
  add("attention.output.LayerNorm", {4});
  add("intermediate.dense", {8, 4});
  add("output.dense", {4, 8});
  add("output.LayerNorm", {4});
  return tensors;
}

// Serves a checkpoint of BERT with these layers: E 4, H 2, F 8, GELU, post-norms with epsilon
// 1e-12.
ArticleServer Bert(int64_t layers, std::vector<TestTensor> tensors) {
  json config = json::parse(TinyBertConfig());
  config["num_hidden_layers"] = layers;
  for (const TestTensor& tensor : TinyBertTensors()) {
    if (absl::StartsWith(tensor.name, "embeddings.")) tensors.push_back(tensor);
  }
  const TempFolder folder;
  folder.Write("config.json", config.dump());
  folder.Write("model.safetensors", MakeSafetensors(tensors));
  return ArticleServer(folder.path());
}

const std::vector<int64_t> kMask = {1, 1, 1, 1, 1, 0};

// F1, TV2: the article's forward pass, from a checkpoint.
TEST(BertSourceWalk, GivesTheContextLayerOfACheckpoint) {
  ArticleServer server = Bert(1, LayerTensors());
  v1::AttendRequest request = RequestOf({2, 3, 4}, Generate(24, 1));
  *request.mutable_attention_mask() = IntegerTensor({2, 3}, kMask);
  const std::vector<float> output = server.Output(request);
  ExpectRow(output, 0, {.76485570, .88767832, -.00705446, -.82642226});
  ExpectSums(output, .54608803, 11.35023106);
}

// F2, TV3: the output's linear layer, and a norm of the sum with the input: BertAttention.
TEST(BertSourceWalk, TheBlockAddsWhatCameInAndNorms) {
  ArticleServer server = Bert(1, LayerTensors());
  v1::AttendRequest request = RequestOf({2, 3, 4}, Generate(24, 1), v1::BLOCK);
  *request.mutable_attention_mask() = IntegerTensor({2, 3}, kMask);
  const std::vector<float> output = server.Output(request);
  ExpectRow(output, 0, {-2.13989312, .77364805, -.08012987, 1.22765898});
  ExpectSums(output, -.74250728, 28.44904678);
}

// F3, TV4: the block followed by the feed-forward layers: BertLayer.
TEST(BertSourceWalk, ALayerIsTheBlockAndFeedForward) {
  ArticleServer server = Bert(1, LayerTensors());
  v1::EncodeRequest request;
  *request.mutable_hidden_states() = FloatTensor({2, 3, 4}, Generate(24, 1));
  *request.mutable_attention_mask() = IntegerTensor({2, 3}, kMask);
  const std::vector<float> output = server.Encoded(request);
  ExpectRow(output, 0, {-.54708337, -.01438845, 1.10111079, .96667593});
  ExpectSums(output, 7.39378132, 11.12390877);
}

// F4: the output of a layer is the input of the next: one call for all layers equals one call for
// each.
TEST(BertSourceWalk, LayersFeedEachOther) {
  std::vector<TestTensor> tensors;
  for (const TestTensor& tensor : TinyBertTensors()) {
    if (!absl::StartsWith(tensor.name, "embeddings.")) tensors.push_back(tensor);
  }
  ArticleServer server = Bert(2, tensors);
  v1::EncodeRequest whole;
  *whole.mutable_hidden_states() = FloatTensor({2, 3, 4}, Generate(24, 1));
  *whole.mutable_attention_mask() = IntegerTensor({2, 3}, kMask);
  v1::EncodeRequest step = whole;
  step.mutable_layers()->set_count(1);
  const std::vector<float> first = server.Encoded(step);
  *step.mutable_hidden_states() = FloatTensor({2, 3, 4}, first);
  step.mutable_layers()->set_first(1);
  const std::vector<float> second = server.Encoded(step);
  EXPECT_EQ(server.Encoded(whole), second);
  EXPECT_GT(LargestDifference(first, second), 0.1);
}

}  // namespace bert_source_walk_layers_test
}  // namespace attendant::articles
