#include "server/hub/wanted_files.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace wanted_files_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// A file's name and content.
using Files = std::map<std::string, std::string>;

absl::StatusOr<std::vector<std::string>> TryChoose(const Files& files) {
  HubListing listing;
  for (const auto& [path, text] : files) listing.files[path] = {};
  return ChooseFiles(listing, [&](const std::string& path) -> absl::StatusOr<std::string> {
    return files.at(path);
  });
}

std::vector<std::string> Choose(const Files& files) {
  const absl::StatusOr<std::vector<std::string>> chosen = TryChoose(files);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return chosen.value_or(std::vector<std::string>());
}

std::string Refusal(const Files& files) {
  const absl::Status status = TryChoose(files).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(WantedFilesTest, ChoosesWhatAModelIsReadFrom) {
  EXPECT_THAT(Choose({{".gitattributes", ""},
                      {"README.md", ""},
                      {"config.json", ""},
                      {"flax_model.msgpack", ""},
                      {"merges.txt", ""},
                      {"model.safetensors", ""},
                      {"model.fp16.safetensors", ""},
                      {"onnx/config.json", ""},
                      {"onnx/model.onnx", ""},
                      {"onnx/model.safetensors", ""},
                      {"openvino/openvino_model.bin", ""},
                      {"preprocessor_config.json", ""},
                      {"pytorch_model.bin", ""},
                      {"sentencepiece.bpe.model", ""},
                      {"special_tokens_map.json", ""},
                      {"tf_model.h5", ""},
                      {"tokenizer.json", ""},
                      {"tokenizer_config.json", ""},
                      {"train_script.py", ""},
                      {"trainer_state.json", ""},
                      {"vocab.txt", ""}}),
              UnorderedElementsAre("config.json", "merges.txt", "model.safetensors",
                                   "preprocessor_config.json", "sentencepiece.bpe.model",
                                   "special_tokens_map.json", "tokenizer.json",
                                   "tokenizer_config.json", "vocab.txt"));
}

TEST(WantedFilesTest, ChoosesTheModulesOfSentenceTransformers) {
  const std::vector<std::string> chosen = Choose(
      {{"1_Pooling/config.json", ""},
       {"2_Dense/config.json", ""},
       {"2_Dense/model.safetensors", ""},
       {"2_Dense/pytorch_model.bin", ""},
       {"config.json", ""},
       {"config_sentence_transformers.json", ""},
       {"model.safetensors", ""},
       {"modules.json", R"([{"path":""},{"path":"1_Pooling"},{"path":"2_Dense"},{"path":"3_N"}])"},
       {"onnx/model.onnx", ""},
       {"sentence_bert_config.json", ""}});
  EXPECT_THAT(chosen, UnorderedElementsAre("1_Pooling/config.json", "2_Dense/config.json",
                                           "2_Dense/model.safetensors", "config.json",
                                           "config_sentence_transformers.json", "model.safetensors",
                                           "modules.json", "sentence_bert_config.json"));
}

TEST(WantedFilesTest, ChoosesTheModulesOfARouter) {
  EXPECT_THAT(
      Choose({{"document_0_MLMTransformer/config.json", ""},
              {"document_0_MLMTransformer/model.safetensors", ""},
              {"document_1_SpladePooling/config.json", ""},
              {"modules.json", R"([{"path":""}])"},
              {"other/model.safetensors", ""},
              {"query_0_SparseStaticEmbedding/config.json", ""},
              {"query_0_SparseStaticEmbedding/model.safetensors", ""},
              {"query_0_SparseStaticEmbedding/tokenizer.json", ""},
              {"router_config.json", R"({"types": {"document_0_MLMTransformer": "a",
                 "document_1_SpladePooling": "b", "query_0_SparseStaticEmbedding": "c"}})"}}),
      UnorderedElementsAre("document_0_MLMTransformer/config.json",
                           "document_0_MLMTransformer/model.safetensors",
                           "document_1_SpladePooling/config.json", "modules.json",
                           "query_0_SparseStaticEmbedding/config.json",
                           "query_0_SparseStaticEmbedding/model.safetensors",
                           "query_0_SparseStaticEmbedding/tokenizer.json", "router_config.json"));
}

TEST(WantedFilesTest, ChoosesTheSettingsOfStanfordsColbert) {
  EXPECT_THAT(Choose({{"artifact.metadata", ""}, {"config.json", ""}, {"model.safetensors", ""}}),
              UnorderedElementsAre("artifact.metadata", "config.json", "model.safetensors"));
}

TEST(WantedFilesTest, ChoosesTheHeadsOfFlagEmbedding) {
  EXPECT_THAT(Choose({{"colbert_linear.pt", ""},
                      {"colbert_linear.safetensors", ""},
                      {"config.json", ""},
                      {"model.safetensors", ""},
                      {"sparse_linear.pt", ""},
                      {"sparse_linear.safetensors", ""}}),
              UnorderedElementsAre("colbert_linear.safetensors", "config.json", "model.safetensors",
                                   "sparse_linear.safetensors"));
}

TEST(WantedFilesTest, ATransformerMayBeInAFolder) {
  EXPECT_THAT(Choose({{"0_Transformer/config.json", ""},
                      {"0_Transformer/model.safetensors", ""},
                      {"0_Transformer/tokenizer.json", ""},
                      {"pytorch_model.bin", ""},
                      {"modules.json", R"([{"path":"0_Transformer"}])"}}),
              UnorderedElementsAre("0_Transformer/config.json", "0_Transformer/model.safetensors",
                                   "0_Transformer/tokenizer.json", "modules.json"));
}

TEST(WantedFilesTest, ChoosesTheShardsThatTheIndexNames) {
  Files files = {{"config.json", ""},
                 {"model-1.safetensors", ""},
                 {"model-2.safetensors", ""},
                 {"model-3.safetensors", ""},
                 {"model.safetensors.index.json",
                  R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})"}};
  EXPECT_THAT(Choose(files), ElementsAre("model-1.safetensors", "model-2.safetensors",
                                         "model.safetensors.index.json", "config.json"));
  files.erase("model-2.safetensors");
  EXPECT_THAT(Refusal(files), HasSubstr("expected the file model-2.safetensors, which "
                                        "model.safetensors.index.json names; got none"));
}

TEST(WantedFilesTest, FilesThatDescribeAModelComeLast) {
  const std::vector<std::string> chosen =
      Choose({{"config.json", ""},
              {"1_Pooling/config.json", ""},
              {"model.safetensors", ""},
              {"modules.json", R"([{"path":""},{"path":"1_Pooling"}])"},
              {"vocab.txt", ""}});
  EXPECT_THAT(chosen, ElementsAre("vocab.txt", "model.safetensors", "config.json", "modules.json",
                                  "1_Pooling/config.json"));
}

TEST(WantedFilesTest, ChoosesATorchModule) {
  EXPECT_THAT(Choose({{"attendant.json", ""}, {"README.md", ""}, {"layer.safetensors", ""}}),
              ElementsAre("layer.safetensors", "attendant.json"));
}

TEST(WantedFilesTest, SaysWhatThereIsInPlaceOfSafetensors) {
  EXPECT_THAT(Refusal({{"config.json", ""}, {"onnx/model.onnx", ""}, {"pytorch_model.bin", ""}}),
              AllOf(HasSubstr("expected model.safetensors or model.safetensors.index.json; got "
                              "onnx/model.onnx, pytorch_model.bin; "),
                    HasSubstr("safetensors/convert"), EndsWith("hf:ORG/REPO@refs/pr/NUMBER")));
  EXPECT_THAT(Refusal({{"a.gguf", ""},
                       {"b.gguf", ""},
                       {"c.gguf", ""},
                       {"d.gguf", ""},
                       {"e.gguf", ""},
                       {"f.gguf", ""}}),
              AllOf(HasSubstr("got a.gguf, b.gguf, c.gguf, d.gguf, e.gguf and 1 more; use the "
                              "repository that they were converted from"),
                    Not(HasSubstr("convert opens"))));
  EXPECT_THAT(Refusal({{"README.md", ""}}), EndsWith("got no weights"));
  EXPECT_THAT(Refusal({{"config.json", ""}, {"adapter_model.safetensors", ""}}),
              HasSubstr("got adapter_model.safetensors"));
}

// The library of sentence-transformers once saved such a module by itself.
TEST(WantedFilesTest, RefusesAPickledModuleBesideSafetensors) {
  EXPECT_THAT(Refusal({{"config.json", ""},
                       {"model.safetensors", ""},
                       {"2_Dense/config.json", ""},
                       {"2_Dense/pytorch_model.bin", ""},
                       {"modules.json", R"([{"path":""},{"path":"2_Dense"}])"}}),
              HasSubstr("expected 2_Dense/model.safetensors or"));
}

TEST(WantedFilesTest, RefusesWeightsWithoutADescription) {
  EXPECT_THAT(Refusal({{"model.safetensors", ""}}),
              HasSubstr("config.json or modules.json or attendant.json; got none"));
}

}  // namespace wanted_files_test
}  // namespace attendant::server
