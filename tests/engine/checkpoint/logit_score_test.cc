// Tests of rerankers that score by the logits of two words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace logit_score_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kModules[] = R"([
    {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
    {"path": "1_LogitScore",
     "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}])";
constexpr char kTokenizer[] = R"({"version": "1.0", "added_tokens": [],
    "model": {"type": "WordLevel", "unk_token": "[UNK]",
              "vocab": {"[UNK]": 0, "a": 1, "no": 4, "yes": 7}}})";
constexpr char kWords[] = "embeddings.word_embeddings.weight";

// The model is a small BERT, whose table of words has 10 rows of 4.
class LogitScoreTest : public ::testing::Test {
 protected:
  LogitScoreTest() {
    folder_.Write("config.json", TinyBertConfig());
    folder_.Write("model.safetensors", MakeSafetensors(TinyBertTensors()));
    folder_.Write("tokenizer.json", kTokenizer);
    folder_.Write("1_LogitScore/config.json", R"({"true_token_id": 7, "false_token_id": 4})");
    folder_.Write("sentence_bert_config.json",
                  R"({"transformer_task": "text-generation", "modality_config": {"message": {}}})");
  }

  absl::StatusOr<Checkpoint> Open(const CheckpointOptions& options = {}) {
    return OpenCheckpoint(folder_.path(), options);
  }
  Checkpoint OpenWithModules() {
    folder_.Write("modules.json", kModules);
    absl::StatusOr<Checkpoint> checkpoint = Open();
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? *std::move(checkpoint) : Checkpoint();
  }
  std::string RefusalOf(const std::string& config) {
    folder_.Write("modules.json", kModules);
    folder_.Write("1_LogitScore/config.json", config);
    return std::string(Open().status().message());
  }

  // Row 7 of a table less its row 4.
  static std::vector<float> Difference(const std::string& table, int64_t subtracted = 4) {
    const std::vector<float> all = TestValues(table, 40);
    std::vector<float> row(all.begin() + 28, all.begin() + 32);
    for (int64_t j = 0; j < 4; ++j) row[j] -= all[subtracted * 4 + j];
    return row;
  }

  const TempFolder folder_;
  const PoolingDescription classifier_ = {.modes = {PoolingMode::kLastToken}, .dense_width = 1};
};

TEST_F(LogitScoreTest, IsOneRowLessAnotherOfTheTableOfWords) {
  Checkpoint checkpoint = OpenWithModules();
  EXPECT_EQ(checkpoint.description.classifier, classifier_);
  EXPECT_EQ(ReadTensor(checkpoint, "classifier.dense.weight"), Difference(kWords));
  EXPECT_FALSE(checkpoint.weights->Has("classifier.dense.bias"));
  EXPECT_EQ(ReadTensor(checkpoint, "embeddings.word"), TestValues(kWords, 40));
  EXPECT_EQ(checkpoint.tokenization.rank_scores, ScoreFunction::kSigmoid);
  EXPECT_THAT(checkpoint.tokenization.labels, ElementsAre("LABEL_0"));
  EXPECT_FALSE(checkpoint.tokenization.texts_take_mean);
}

TEST_F(LogitScoreTest, TakesTheOutputEmbeddingIfItIsNotTied) {
  std::vector<TestTensor> tensors = TinyBertTensors();
  tensors.push_back(MakeTensor("lm_head.weight", {10, 4}));
  folder_.Write("model.safetensors", MakeSafetensors(tensors));
  Checkpoint checkpoint = OpenWithModules();
  EXPECT_EQ(ReadTensor(checkpoint, "classifier.dense.weight"), Difference("lm_head.weight"));
  EXPECT_THAT(checkpoint.unused_tensors, Not(Contains("lm_head.weight")));
}

TEST_F(LogitScoreTest, MayBeOneRow) {
  folder_.Write("1_LogitScore/config.json", R"({"true_token_id": 7, "false_token_id": null})");
  Checkpoint checkpoint = OpenWithModules();
  const std::vector<float> all = TestValues(kWords, 40);
  EXPECT_EQ(ReadTensor(checkpoint, "classifier.dense.weight"),
            std::vector<float>(all.begin() + 28, all.begin() + 32));
}

TEST_F(LogitScoreTest, AnOptionTakesYesAndNo) {
  CheckpointOptions yes_no;
  yes_no.pooling = PoolingChoice::kYesNo;
  absl::StatusOr<Checkpoint> checkpoint = Open(yes_no);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->description.classifier, classifier_);
  EXPECT_EQ(ReadTensor(*checkpoint, "classifier.dense.weight"), Difference(kWords));
  EXPECT_TRUE(checkpoint->tokenization.pair_template.has_value());
  EXPECT_FALSE(Open()->description.classifier.has_value());
  folder_.Write("tokenizer.json", R"({"model": {"vocab": {"[UNK]": 0, "yes": 7}}})");
  EXPECT_THAT(
      std::string(Open(yes_no).status().message()),
      HasSubstr(
          "pooling=yes_no: requires the tokens 'yes' and 'no' in tokenizer.json; 'no' is missing"));
  folder_.Write("tokenizer.json", R"({"model": {"vocab": {"no": 4, "yes": 10}}})");
  EXPECT_THAT(std::string(Open(yes_no).status().message()),
              HasSubstr("pooling=yes_no: expected the token 'yes' of tokenizer.json to have an id "
                        "in 0..9; got 10"));
  folder_.Write("modules.json", kModules);
  EXPECT_THAT(std::string(Open(yes_no).status().message()),
              HasSubstr("pooling=yes_no: cannot be combined with modules.json"));
}

TEST_F(LogitScoreTest, PairsGetTheTemplateOfTheFolder) {
  folder_.Write("chat_template.jinja", "Judge whether the Document meets the requirements {{ x }}");
  const Checkpoint checkpoint = OpenWithModules();
  const PairTemplate& found = *checkpoint.tokenization.pair_template;
  EXPECT_THAT(found.before,
              AllOf(StartsWith("<|im_start|>system\nJudge whether the Document meets the "
                               "requirements based on the Query and the Instruct provided."),
                    EndsWith("<|im_start|>user\n<Instruct>: ")));
  EXPECT_EQ(found.instruction,
            "Given a web search query, retrieve relevant passages that answer the query");
  EXPECT_EQ(found.after_instruction, "\n<Query>: ");
  EXPECT_EQ(found.between, "\n<Document>: ");
  EXPECT_EQ(found.after, "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

TEST_F(LogitScoreTest, PairsOfAModelOfTextsAreNotRendered) {
  folder_.Write("chat_template.jinja", "Judge whether the Document meets the requirements");
  for (const char* texts : {R"(, "modality_config": {"text": {}}})", "}"}) {
    folder_.Write("sentence_bert_config.json",
                  std::string(R"({"transformer_task": "text-generation")") + texts);
    const Checkpoint checkpoint = OpenWithModules();
    EXPECT_FALSE(checkpoint.tokenization.pair_template.has_value());
    EXPECT_THAT(checkpoint.warnings, Not(Contains(HasSubstr("chat_template"))));
  }
}

TEST_F(LogitScoreTest, AChatTemplateWithoutModulesIsAWarning) {
  const auto warning = Contains(HasSubstr("chat_template: not evaluated: texts are read as "));
  EXPECT_THAT(Open()->warnings, Not(warning));
  folder_.Write("tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
  EXPECT_THAT(Open()->warnings, warning);
  CheckpointOptions yes_no;
  yes_no.pooling = PoolingChoice::kYesNo;
  EXPECT_THAT(Open(yes_no)->warnings, Not(warning));
}

TEST_F(LogitScoreTest, AnotherChatTemplateIsAWarning) {
  folder_.Write("chat_template.jinja", "{{ messages }}");
  const Checkpoint checkpoint = OpenWithModules();
  EXPECT_FALSE(checkpoint.tokenization.pair_template.has_value());
  EXPECT_THAT(checkpoint.warnings, Contains(HasSubstr("chat_template: not evaluated")));
}

TEST_F(LogitScoreTest, RefusesOtherIdsAndInputsAndModules) {
  EXPECT_THAT(RefusalOf(R"({"true_token_id": 10, "false_token_id": 4})"),
              HasSubstr("true_token_id: expected"));
  EXPECT_THAT(RefusalOf(R"({"true_token_id": 7, "false_token_id": -1})"),
              HasSubstr("false_token_id: expected"));
  EXPECT_THAT(RefusalOf(R"({"true_token_id": 7, "module_input_name": "logits"})"),
              HasSubstr("module_input_name: expected 'causal_logits'; got 'logits'"));
  folder_.Write("modules.json", R"([
      {"path": "", "type": "sentence_transformers.models.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "1_LogitScore", "type": "sentence_transformers.models.LogitScore"}])");
  EXPECT_THAT(std::string(Open().status().message()),
              HasSubstr("LogitScore: cannot be combined with modules other than a Transformer"));
}

}  // namespace logit_score_test
}  // namespace attendant
