// Tests of how inputs are divided, how paths are read, and of scores.
#include "server/text_calls/text_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/text_calls/text_collector.h"
#include "server/text_calls/text_path.h"

namespace attendant::server {
namespace text_parts_test {

using ::testing::ElementsAre;
using ::testing::FloatEq;

TextTask TaskOf(const std::vector<size_t>& bytes) {
  TextTask task;
  for (const size_t size : bytes) task.inputs.push_back({std::string(size, 'a')});
  return task;
}

TEST(DivideInputsTest, SimilarLengthsGoTogetherLongOnesFirst) {
  const PartLimits limits = {.inputs = 2, .batch_tokens = 1000, .request_tokens = 1000};
  EXPECT_THAT(DivideInputs(TaskOf({4, 400, 8, 300}), limits),
              ElementsAre(ElementsAre(1, 3), ElementsAre(2, 0)));
}

TEST(DivideInputsTest, PartsAreBounded) {
  const TextTask task = TaskOf({400, 400, 400});
  EXPECT_EQ(DivideInputs(task, {.batch_tokens = 210, .request_tokens = 10000}).size(), 2u);
  EXPECT_EQ(DivideInputs(task, {.batch_tokens = 10000, .request_tokens = 810}).size(), 2u);
  EXPECT_EQ(DivideInputs(task, {.batch_tokens = 1, .request_tokens = 1}).size(), 3u);
  EXPECT_EQ(
      DivideInputs(task, {.batch_tokens = 30, .request_tokens = 30, .input_tokens = 10}).size(),
      1u);
  const TextTask large = TaskOf({200000, 200000});
  EXPECT_EQ(
      DivideInputs(large, {.batch_tokens = 99, .request_tokens = 99, .input_tokens = 10}).size(),
      2u);
}

TEST(DivideInputsTest, PaddingCounts) {
  TextTask task = TaskOf({4, 4, 4, 4});
  EXPECT_EQ(DivideInputs(task, {.batch_tokens = 128, .request_tokens = 1000}).size(), 1u);
  const PartLimits by_batch = {.batch_tokens = 128, .request_tokens = 1000, .padded_tokens = 64};
  EXPECT_EQ(DivideInputs(task, by_batch).size(), 2u);
  EXPECT_EQ(
      DivideInputs(task, {.batch_tokens = 1000, .request_tokens = 128, .padded_tokens = 64}).size(),
      2u);
  for (TextInput& input : task.inputs) input.ids = {{1, 2}};  // which are not padded
  EXPECT_EQ(DivideInputs(task, by_batch).size(), 1u);
}

TEST(DivideInputsTest, TextsPairsAndIdsAreApart) {
  TextTask task = TaskOf({4, 4, 4});
  task.inputs[1].pair = "b";
  task.inputs[2].ids = {{1, 2}};
  EXPECT_THAT(DivideInputs(task, {.batch_tokens = 1000, .request_tokens = 1000}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(NameInputTest, HasTheCallersNames) {
  TextTask task = TaskOf({1, 1});
  task.field = "input";
  const absl::Status error = absl::InvalidArgumentError("texts[0]: expected a; got b");
  EXPECT_EQ(NameInput(error, task, 1).message(), "input[1]: expected a; got b");
  task.inputs[1].pair = "c";
  EXPECT_EQ(NameInput(error, task, 1).message(), "input[1][0]: expected a; got b");
  EXPECT_EQ(NameInput(absl::InvalidArgumentError("text_pairs[0]: no"), task, 1).message(),
            "input[1][1]: no");
  EXPECT_EQ(NameInput(absl::InvalidArgumentError("token_ids[4]: no"), task, 0).message(),
            "input[0][4]: no");
  task.query = "q";
  task.inputs[1].pair.reset();
  EXPECT_EQ(NameInput(error, task, 1).message(), "query: expected a; got b");
  EXPECT_EQ(NameInput(absl::InvalidArgumentError("text_pairs[0]: no"), task, 1).message(),
            "input[1]: no");
  EXPECT_EQ(NameInput(absl::InternalError("texts[0]: no"), task, 1).message(), "texts[0]: no");
  task.query.reset();
  task.inputs.resize(1);
  EXPECT_EQ(NameInput(error, task, 0).message(), "input: expected a; got b");
}

TEST(ApplyScoresTest, AreThoseOfTheFunction) {
  const auto apply = [](ScoreFunction function, std::vector<float> outputs) {
    ApplyScores(function, absl::MakeSpan(outputs));
    return outputs;
  };
  EXPECT_THAT(apply(ScoreFunction::kPlain, {-3, 7}), ElementsAre(-3, 7));
  EXPECT_THAT(apply(ScoreFunction::kSigmoid, {0, 200, -200}),
              ElementsAre(FloatEq(0.5), FloatEq(1), FloatEq(0)));
  EXPECT_THAT(apply(ScoreFunction::kSoftmax, {1000, 1000}), ElementsAre(FloatEq(.5), FloatEq(.5)));
  EXPECT_THAT(apply(ScoreFunction::kUnknown, {0}), ElementsAre(FloatEq(0.5)));
  EXPECT_THAT(apply(ScoreFunction::kUnknown, {3, 3}), ElementsAre(FloatEq(.5), FloatEq(.5)));
}

// "<path of the route or page> of <model>".
std::string Read(const std::string& path, const std::vector<std::string>& served = {}) {
  const auto found = ParseTextPath(path, [&](const std::string& name) {
    return std::find(served.begin(), served.end(), name) != served.end();
  });
  if (!found) return "none";
  const std::string what = found->route == nullptr ? std::to_string(static_cast<int>(found->page))
                                                   : std::string(found->route->path);
  return what + " of " + found->model;
}

TEST(TextPathTest, NamesMayHaveSlashes) {
  EXPECT_EQ(Read("/v1/embeddings"), "/v1/embeddings of ");
  EXPECT_EQ(Read("/openai/v1/embeddings"), "/v1/embeddings of ");
  EXPECT_EQ(Read("/openai/v1/models/org/a"), "1 of org/a");
  EXPECT_EQ(Read("/openai/deployments/org/a/embeddings"), "/embeddings of org/a");
  EXPECT_EQ(Read("/openai/models"), "0 of ");
  EXPECT_EQ(Read("/v3/embeddings"), "/v1/embeddings of ");
  EXPECT_EQ(Read("/v3/rerank"), "/v1/rerank of ");
  EXPECT_EQ(Read("/v3/v2/rerank"), "/v2/rerank of ");
  EXPECT_EQ(Read("/v3/models"), "0 of ");
  EXPECT_EQ(Read("/v3/models/org/a"), "1 of org/a");
  EXPECT_EQ(Read("/v3"), "none");
  EXPECT_EQ(Read("/v30/embeddings"), "none");
  EXPECT_EQ(Read("/api/embed"), "/api/embed of ");
  EXPECT_EQ(Read("/models/org/a/api/embed"), "/api/embed of org/a");
  EXPECT_EQ(Read("/api/tags"), "5 of ");
  EXPECT_EQ(Read("/api/version"), "6 of ");
  EXPECT_EQ(Read("/"), "/ of ");
  EXPECT_EQ(Read("/models"), "0 of ");
  EXPECT_EQ(Read("/models/a"), "/ of a");
  EXPECT_EQ(Read("/models/org/models"), "/ of org/models");
  EXPECT_EQ(Read("/models/org/v1/models"), "0 of org");
  EXPECT_EQ(Read("/models/org/a/v1/embeddings"), "/v1/embeddings of org/a");
  EXPECT_EQ(Read("/models/org/a"), "/ of org/a");
  EXPECT_EQ(Read("/v1/models/org/a"), "1 of org/a");
  EXPECT_EQ(Read("/models/org/embed"), "/embed of org");
  EXPECT_EQ(Read("/models/org/embed", {"org/embed"}), "/ of org/embed");
  EXPECT_EQ(Read("/models/org/v1/embeddings", {"org/v1"}), "/embeddings of org/v1");
}

TEST(TextPathTest, OthersAreNone) {
  for (const char* path : {"/v1", "/openai", "/openai/v1", "/v1/models/a:predict",
                           "/openai/embeddings", "/v2", "/v2/models/a/infer", "/metrics", "embed",
                           "/openai/deployments/a", "/openai/deployments/a/chat/completions",
                           "/openai/deployments/embeddings", "/api", "/api/chat"}) {
    EXPECT_EQ(Read(path), "none") << path;
  }
}

}  // namespace text_parts_test
}  // namespace attendant::server
