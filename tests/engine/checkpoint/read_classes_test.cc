#include "engine/checkpoint/read_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace read_classes_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReadClassesTest : public ::testing::Test {
 protected:
  absl::Status Status(const std::string& config, ClassCounts classes, Tokenization& read) {
    folder_.Write("config.json", config);
    return ReadClasses(folder_.path(), folder_.path(), classes, read);
  }

  Tokenization Read(const std::string& config, ClassCounts classes = {.of_sequences = 3}) {
    Tokenization read;
    const absl::Status status = Status(config, classes, read);
    EXPECT_TRUE(status.ok()) << status;
    return read;
  }

  std::string Refusal(const std::string& config) {
    Tokenization read;
    return std::string(Status(config, {.of_sequences = 3}, read).message());
  }

  // Expects these functions for one class and for three.
  void ExpectScores(const std::string& config, int64_t classes, ScoreFunction class_scores,
                    ScoreFunction rank_scores) {
    const Tokenization read = Read(config, {.of_sequences = classes});
    EXPECT_EQ(read.class_scores, class_scores) << config << " with " << classes;
    EXPECT_EQ(read.rank_scores, rank_scores) << config << " with " << classes;
  }

  TempFolder folder_;
};

TEST_F(ReadClassesTest, ClassesWithoutANameHaveTheLibrarys) {
  EXPECT_THAT(Read(R"({"id2label": {"1": "no", "0": "yes", "2": "perhaps"}})").labels,
              ElementsAre("yes", "no", "perhaps"));
  EXPECT_THAT(Read(R"({"id2label": {"0": "yes", "2": "no"}})").labels,
              ElementsAre("yes", "LABEL_1", "no"));
  EXPECT_THAT(Read(R"({"id2label": {"0": "yes"}})").labels,
              ElementsAre("yes", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(Read("{}").labels, ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(Read(R"({"id2label": {"0": 7, "1": null, "2": [], "3": "beyond", "x": "y"}})").labels,
              ElementsAre("7", "LABEL_1", "LABEL_2"));
  EXPECT_THAT(Read("{}", {.of_tokens = 2}).labels, ElementsAre("LABEL_0", "LABEL_1"));
  EXPECT_THAT(Read(R"({"id2label": {"0": "yes"}})", {}).labels, IsEmpty());
  EXPECT_THAT(Refusal(R"({"id2label": ["yes", "no"]})"),
              HasSubstr("id2label: expected an object; got a list"));
}

// As TextClassificationPipeline of transformers 5.23 and CrossEncoder of sentence-transformers 6.2.
TEST_F(ReadClassesTest, ScoresFollowFromTheProblem) {
  using enum ScoreFunction;
  ExpectScores("{}", 1, kSigmoid, kSigmoid);
  ExpectScores("{}", 3, kSoftmax, kPlain);
  ExpectScores(R"({"problem_type": "regression"})", 1, kPlain, kSigmoid);
  ExpectScores(R"({"problem_type": "regression"})", 3, kPlain, kPlain);
  ExpectScores(R"({"problem_type": "multi_label_classification"})", 3, kSigmoid, kPlain);
  ExpectScores(R"({"problem_type": "single_label_classification"})", 3, kSoftmax, kPlain);
  ExpectScores(R"({"problem_type": "single_label_classification"})", 1, kSigmoid, kSigmoid);
  ExpectScores("{}", 0, kUnknown, kUnknown);
  EXPECT_THAT(Refusal(R"({"problem_type": "other"})"),
              HasSubstr("problem_type: expected one of regression, multi_label_classification, "
                        "single_label_classification; got 'other'"));
}

TEST_F(ReadClassesTest, TheActivationOfACrossEncoderComesFirst) {
  using enum ScoreFunction;
  const std::string stored =
      R"("sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"})";
  ExpectScores("{" + stored + "}", 1, kPlain, kPlain);
  ExpectScores("{" + stored + R"(, "problem_type": "multi_label_classification"})", 3, kPlain,
               kPlain);
  const std::string older =
      R"("sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid")";
  ExpectScores("{" + older + "}", 3, kSigmoid, kSigmoid);
  ExpectScores("{" + stored + ", " + older + "}", 3, kPlain, kPlain);
  // The library does not trust names of other packages.
  ExpectScores(R"({"sentence_transformers": {"activation_fn": "mine.Own"}})", 1, kSigmoid,
               kSigmoid);
  ExpectScores(R"({"sentence_transformers": {"version": "5.0"}})", 3, kSoftmax, kPlain);
  EXPECT_THAT(Refusal(R"({"sbert_ce_default_activation_function": "torch.nn.modules.Tanh"})"),
              HasSubstr("sbert_ce_default_activation_function: expected one of "
                        "torch.nn.modules.activation.Sigmoid, "));
}

TEST_F(ReadClassesTest, TheNewestActivationCountsWithModules) {
  using enum ScoreFunction;
  const std::string older =
      R"({"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"})";
  folder_.Write("config_sentence_transformers.json",
                R"({"activation_fn": "torch.nn.modules.activation.Softmax"})");
  ExpectScores(older, 3, kSigmoid, kSigmoid);
  folder_.Write("modules.json", "[]");
  ExpectScores(older, 3, kSoftmax, kSoftmax);
  folder_.Write("config_sentence_transformers.json", R"({"activation_fn": "torch.nn.Tanh"})");
  EXPECT_THAT(Refusal(older), HasSubstr("config_sentence_transformers.json: activation_fn: "
                                        "expected one of torch.nn.modules.activation.Sigmoid, "));
}

}  // namespace read_classes_test
}  // namespace attendant
