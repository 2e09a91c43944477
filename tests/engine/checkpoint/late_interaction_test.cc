// Tests of what folders of models for late interaction say about queries and documents: the
// library's own, PyLate's and Stanford's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/engine/checkpoint/tiny_families.h"

namespace attendant {
namespace late_interaction_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kOfTokens[] = R"({"module_input_name": "token_embeddings"})";

// A tiny BERT, for sequences of at most 6 tokens, whose tokens have vectors.
class LateInteraction : public ::testing::Test {
 protected:
  LateInteraction() {
    folder_.Write("config.json", TinyBertConfig());
    folder_.Write("model.safetensors", MakeSafetensors(TinyBertTensors()));
    folder_.Write("tokenizer.json", R"({"model": {"type": "WordPiece",
        "vocab": {"[UNK]": 0, "a": 1, ",": 2, "[MASK]": 3, "</s>": 4, "[unused0]": 5}}})");
    folder_.Write("tokenizer_config.json",
                  R"({"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]"})");
    folder_.Write("2_Normalize/config.json", kOfTokens);
    WriteModules({"MultiVectorMask", "Normalize"});
  }

  void WriteModules(const std::vector<std::string>& types) {
    std::string list =
        R"([{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"})";
    for (const std::string& type : types) {
      absl::StrAppend(&list, R"(, {"path": "2_)", type, R"(", "type": "sentence_transformers.)",
                      type, "\"}");
    }
    folder_.Write("modules.json", list + "]");
  }
  void WriteSettings(const std::string& settings) {
    folder_.Write("sentence_bert_config.json", settings);
  }
  void WriteSentenceConfig(const std::string& config) {
    folder_.Write("config_sentence_transformers.json", config);
  }

  Tokenization Read() {
    absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder_.path(), {});
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? std::move(checkpoint->tokenization) : Tokenization();
  }
  std::string Refusal() {
    const absl::Status status = OpenCheckpoint(folder_.path(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
};

TEST_F(LateInteraction, QueriesAreExpandedAsTheTransformerSays) {
  EXPECT_FALSE(Read().query_expansion.has_value());
  WriteSettings(R"({"query_expansion": {"strategy": "fixed", "length": 5}, "document_length": 6})");
  const Tokenization fixed = Read();
  EXPECT_EQ(fixed.query_expansion->length, 5);
  EXPECT_EQ(fixed.query_expansion->token, "[MASK]");
  EXPECT_FALSE(fixed.query_expansion->attended);
  EXPECT_THAT(fixed.task_lengths, UnorderedElementsAre(Pair("query", 5), Pair("document", 6)));
  WriteSettings(R"({"query_expansion": {"strategy": "min", "length": 3, "attend": true,
                                        "token": "</s>"}, "query_length": 4})");
  const Tokenization least = Read();
  EXPECT_EQ(least.query_expansion->length, 3);
  EXPECT_EQ(least.query_expansion->token, "</s>");
  EXPECT_TRUE(least.query_expansion->attended);
  EXPECT_THAT(least.task_lengths, UnorderedElementsAre(Pair("query", 4)));
}

TEST_F(LateInteraction, TheTokenIsTheMaskOrElseTheEndOfTexts) {
  WriteSettings(R"({"query_expansion": {"strategy": "min", "length": 3, "token": null}})");
  folder_.Write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast",
      "mask_token": {"content": "a"}, "eos_token": "</s>"})");
  EXPECT_EQ(Read().query_expansion->token, "a");
  // A class that has no mask unless it is named; others have the usual ones.
  folder_.Write("tokenizer_config.json",
                R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"})");
  EXPECT_EQ(Read().query_expansion->token, "</s>");
  folder_.Write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_EQ(Read().query_expansion->token, "[MASK]");
  folder_.Write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_THAT(
      Refusal(),
      HasSubstr(
          "query_expansion: the tokenizer has neither a mask token nor an end-of-text token"));
  WriteSettings(R"({"query_expansion": {"strategy": "min", "length": 3, "token": "[X]"}})");
  EXPECT_THAT(Refusal(), HasSubstr("query_expansion: the tokenizer has no token '[X]'"));
}

TEST_F(LateInteraction, WithoutTokenizerJsonTheVocabularyIsLookedThrough) {
  std::filesystem::remove(folder_.File("tokenizer.json"));
  WriteSettings(R"({"query_expansion": {"strategy": "min", "length": 3}})");
  folder_.Write("vocab.txt", "[UNK]\na\n[MASK]\n");
  EXPECT_EQ(Read().query_expansion->token, "[MASK]");
  folder_.Write("vocab.txt", "[UNK]\na\n");
  EXPECT_THAT(Refusal(), HasSubstr("query_expansion: the tokenizer has neither a mask token"));
}

TEST_F(LateInteraction, RefusesExpansionsThatItDoesNotKnow) {
  WriteSettings(R"({"query_expansion": {"strategy": "most", "length": 0, "attend": 1, "x": 2}})");
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("query_expansion: 4 problems: "),
                    HasSubstr("strategy: expected one of fixed, min; got 'most'"),
                    HasSubstr("length: expected an integer in 1"),
                    HasSubstr("attend: expected true or false; got 1"),
                    HasSubstr("expected only the keys attend, length, strategy, token; got 'x'")));
  WriteSettings(R"({"query_expansion": {"strategy": "min", "length": 3}, "query_length": 2})");
  EXPECT_THAT(Refusal(),
              HasSubstr("query_length: expected at least 3 (query_expansion.length); got 2"));
  WriteSettings(R"({"query_expansion": {"strategy": "fixed", "length": 7}})");
  EXPECT_THAT(
      Refusal(),
      HasSubstr(
          "query_expansion: expected at most 6 tokens (the model's longest sequence); got 7"));
  WriteSettings(R"({"query_expansion": {"strategy": "fixed", "length": 6}})");
  folder_.Write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast",
      "mask_token": "[MASK]", "padding_side": "left"})");
  EXPECT_THAT(Refusal(), HasSubstr("query_expansion: not supported with padding_side 'left'"));
}

// Tokens that nothing attends to and that are not scored change nothing.
TEST_F(LateInteraction, WithoutAMaskOnlyAttendedTokensCount) {
  WriteModules({"Normalize"});
  WriteSettings(R"({"query_expansion": {"strategy": "fixed", "length": 5}})");
  EXPECT_FALSE(Read().query_expansion.has_value());
  EXPECT_THAT(Read().task_lengths, UnorderedElementsAre(Pair("query", 5)));
  WriteSettings(R"({"query_expansion": {"strategy": "fixed", "length": 5, "attend": true}})");
  EXPECT_TRUE(Read().query_expansion.has_value());
}

TEST_F(LateInteraction, FamiliesThatMaskEmbeddingsMustAttendToAddedTokens) {
  int families = 0;
  for (const TinyFamily& family : TinyFamilies()) {
    if (family.name != "deberta" && family.name != "esm") continue;
    ++families;
    WriteFamily(folder_, family);
    WriteSettings(R"({"query_expansion": {"strategy": "fixed", "length": 3}})");
    EXPECT_THAT(Refusal(), AllOf(HasSubstr("query_expansion: not supported by the family "),
                                 HasSubstr(" without attend: its embeddings are zeros at positions "
                                           "that no token attends to")));
    WriteSettings(R"({"query_expansion": {"strategy": "fixed", "length": 3, "attend": true}})");
    EXPECT_TRUE(Read().query_expansion->attended);
  }
  EXPECT_EQ(families, 2);
}

TEST_F(LateInteraction, OtherModelsHaveNoLengthsByTask) {
  folder_.Write("2_Pooling/config.json", R"({"embedding_dimension": 4, "pooling_mode": "mean"})");
  WriteModules({"Pooling"});
  for (const char* settings : {R"({"query_length": 5})", R"({"document_length": 5})",
                               R"({"query_expansion": {"strategy": "fixed", "length": 5}})"}) {
    WriteSettings(settings);
    EXPECT_THAT(
        Refusal(),
        HasSubstr(
            "query_length, document_length, query_expansion: require modules for token vectors"));
  }
  WriteSettings(R"({"query_length": null, "query_expansion": null})");
  EXPECT_THAT(Read().task_lengths, IsEmpty());
}

TEST_F(LateInteraction, PylateExpandsQueriesUnlessItsFileSaysOtherwise) {
  WriteModules({});
  WriteSentenceConfig(R"({"model_type": "ColBERT", "query_length": 5, "document_length": 6,
                          "attend_to_expansion_tokens": true})");
  const Tokenization expanded = Read();
  EXPECT_EQ(expanded.query_expansion->length, 5);
  EXPECT_TRUE(expanded.query_expansion->attended);
  EXPECT_THAT(expanded.task_lengths, UnorderedElementsAre(Pair("query", 5), Pair("document", 6)));
  EXPECT_FALSE(expanded.scores_take_mean);
  WriteSentenceConfig(R"({"model_type": "ColBERT", "query_length": 5, "do_query_expansion": false,
                          "similarity_fn_name": "meanmaxsim"})");
  const Tokenization plain = Read();
  EXPECT_FALSE(plain.query_expansion.has_value());
  EXPECT_THAT(plain.task_lengths, UnorderedElementsAre(Pair("query", 5)));
  EXPECT_TRUE(plain.scores_take_mean);
  folder_.Write("tokenizer_config.json", R"({"model_max_length": 5, "mask_token": "[MASK]"})");
  WriteSentenceConfig(R"({"model_type": "ColBERT", "document_length": 4,
                          "do_query_expansion": false})");
  EXPECT_THAT(Read().task_lengths, UnorderedElementsAre(Pair("query", 5), Pair("document", 4)));
  // Its usual length is beyond this model's.
  WriteSentenceConfig(R"({"model_type": "ColBERT"})");
  EXPECT_THAT(Refusal(), HasSubstr("got 32"));
  WriteSettings(R"({"query_expansion": null})");  // which counts more
  EXPECT_FALSE(Read().query_expansion.has_value());
}

TEST_F(LateInteraction, StanfordsFolderHasItsLinearLayerAmongTheWeights) {
  std::filesystem::remove(folder_.File("modules.json"));
  folder_.Write("config.json",
                absl::StrReplaceAll(TinyBertConfig(), {{"\"BertModel\"", "\"HF_ColBERT\""}}));
  std::vector<TestTensor> tensors = TinyBertTensors();
  for (TestTensor& tensor : tensors) tensor.name = "bert." + tensor.name;
  tensors.push_back(MakeTensor("linear.weight", {2, 4}));
  folder_.Write("model.safetensors", MakeSafetensors(tensors));
  folder_.Write("artifact.metadata", R"({"query_token_id": "[unused0]", "doc_token_id": "[unused1]",
      "query_maxlen": 5, "doc_maxlen": 6, "attend_to_mask_tokens": false,
      "mask_punctuation": true, "similarity": "cosine", "interaction": "colbert"})");
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder_.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.token_head,
            (PoolingDescription{.modes = {}, .dense_width = 2, .normalize = true}));
  EXPECT_FALSE(checkpoint->description.pooling.has_value());
  EXPECT_EQ(ReadTensor(*checkpoint, "token_head.dense.weight"), TestValues("linear.weight", 8));
  const Tokenization& read = checkpoint->tokenization;
  EXPECT_TRUE(read.is_multi_vector);
  EXPECT_THAT(read.prompts,
              UnorderedElementsAre(Pair("query", "[unused0] "), Pair("document", "[unused1] ")));
  EXPECT_THAT(read.tokenizer_json, HasSubstr(R"("content":"[unused0]")"));
  EXPECT_EQ(read.query_expansion->length, 5);
  EXPECT_THAT(read.task_lengths, UnorderedElementsAre(Pair("query", 5), Pair("document", 6)));
  EXPECT_THAT(read.selection.skipped_ids, ElementsAre(2));

  folder_.Write("artifact.metadata", R"({"query_maxlen": 5, "mask_punctuation": false})");
  EXPECT_THAT(Read().selection.skipped_ids, IsEmpty());
  folder_.Write("artifact.metadata", R"({"query_maxlen": 5, "skiplist_words": ["a"]})");
  EXPECT_THAT(Read().selection.skipped_ids, ElementsAre(2));
  folder_.Write("artifact.metadata",
                R"({"query_maxlen": 5, "similarity": "l2", "interaction": "flipr"})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("artifact.metadata: 2 problems: "),
                               HasSubstr("similarity: expected one of cosine; got 'l2'"),
                               HasSubstr("interaction: expected one of colbert; got 'flipr'")));
}

TEST_F(LateInteraction, RefusesSettingsThatItDoesNotApply) {
  WriteSettings(R"({"transformer_task": "retrieval", "module_output_name": "pixels",
      "modality_config": {"text": {"method": "get_features", "method_output_name": "x"},
                          "message": {}},
      "processing_kwargs": {"text": {"max_length": 3}},
      "model_args": {"trust_remote_code": true, "attn_implementation": "sdpa"},
      "tokenizer_args": {"padding_side": "left"}, "config_args": {"is_causal": false}})");
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("sentence_bert_config.json: 8 problems: "),
                    HasSubstr("transformer_task: expected feature-extraction, fill-mask, "
                              "sequence-classification, text-generation; got 'retrieval'"),
                    HasSubstr("module_output_name: expected token_embeddings, sentence_embedding, "
                              "scores, causal_logits; got 'pixels'"),
                    HasSubstr("modality_config.text.method: expected forward, get_text_features; "
                              "got 'get_features'"),
                    HasSubstr("modality_config.text.method_output_name: expected "
                              "last_hidden_state, pooler_output, logits; got 'x'"),
                    HasSubstr("modality_config: message: not supported: chat templates"),
                    HasSubstr("processing_kwargs: 'text' not supported"),
                    HasSubstr("tokenizer_args: 'padding_side' not supported"),
                    HasSubstr("config_args: 'is_causal' not supported")));
  WriteSettings(R"({"transformer_task": "feature-extraction", "unpad_inputs": true,
      "module_output_name": "token_embeddings", "processing_kwargs": {},
      "modality_config": {"text": {"method": "forward",
                                   "method_output_name": "last_hidden_state"}}})");
  EXPECT_FALSE(Read().query_expansion.has_value());
  WriteSentenceConfig(R"({"truncate_dim": 2, "max_active_dims": 3})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("config_sentence_transformers.json: 2 problems: "),
                               HasSubstr("truncate_dim: not supported"),
                               HasSubstr("max_active_dims: not supported")));
}

}  // namespace late_interaction_test
}  // namespace attendant
