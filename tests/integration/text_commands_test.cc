// Tests of the commands of attendant-client that take texts against the real server.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/integration/server_process.h"

namespace attendant::client {
namespace text_commands_test {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kVocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\ngood\n##bye\nnight\n";

// The vocabulary as transformers' class for BERT needs it in tokenizer.json.
std::string TokenizerJson() {
  const std::vector<std::string> words = absl::StrSplit(kVocabulary, '\n', absl::SkipEmpty());
  json vocabulary;
  for (size_t i = 0; i < words.size(); ++i) vocabulary[words[i]] = i;
  return json{{"version", "1.0"},
              {"added_tokens", json::array()},
              {"model",
               {{"type", "WordPiece"},
                {"unk_token", "[UNK]"},
                {"continuing_subword_prefix", "##"},
                {"max_input_chars_per_word", 100},
                {"vocab", vocabulary}}}}
      .dump();
}

// A BERT of ten words and sequences of at most six tokens; with a head for some classes.
void WriteModel(const TempFolder& folder, int64_t classes) {
  json config = json::parse(TinyBertConfig());
  std::vector<TestTensor> tensors = TinyBertTensors(classes > 0 ? "bert." : "");
  if (classes > 0) {
    config["architectures"] = {"BertForSequenceClassification"};
    for (const int64_t i : {int64_t{0}, classes - 1}) {
      config["id2label"][std::to_string(i)] = i == 0 ? "good" : "bad";
    }
    tensors.push_back(MakeTensor("bert.pooler.dense.weight", {4, 4}));
    tensors.push_back(MakeTensor("bert.pooler.dense.bias", {4}));
    tensors.push_back(MakeTensor("classifier.weight", {classes, 4}));
    tensors.push_back(MakeTensor("classifier.bias", {classes}));
  }
  folder.Write("config.json", config.dump());
  folder.Write("model.safetensors", MakeSafetensors(tensors));
  if (classes == 0) {
    folder.Write("vocab.txt", kVocabulary);
  } else {
    folder.Write("tokenizer.json", TokenizerJson());
  }
}

class TextCommandsAndServerTest : public ::testing::Test {
 protected:
  explicit TextCommandsAndServerTest(int64_t classes = 0) { WriteModel(folder_, classes); }

  // Started when the folder is there.
  server::ReadyServer& Server() {
    if (!server_) {
      server_ = std::make_unique<server::ReadyServer>(std::vector<std::string>{
          "--model=m=" + folder_.path(), "--model=t=synthetic:tiny", "--max-request-tokens=2048"});
    }
    return *server_;
  }

  Outcome Run(std::vector<std::string> command) {
    command.insert(command.end(), {"--address", Server().address()});
    return RunWith(command);
  }

  json RunJson(std::vector<std::string> command) {
    command.insert(command.end(), {"--model", "m", "--json"});
    const Outcome outcome = Run(std::move(command));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  const TempFolder folder_;
  std::unique_ptr<server::ReadyServer> server_;
};

TEST_F(TextCommandsAndServerTest, EmbedGivesTheMeanOfTheTokens) {
  const json tokens = RunJson({"tokenize", "hello  goodbye"});
  EXPECT_EQ(tokens["texts"][0]["ids"], (json{2, 5, 7, 8, 3}));
  EXPECT_EQ(tokens["texts"][0]["tokens"], (json{"[CLS]", "hello", "good", "##bye", "[SEP]"}));
  EXPECT_EQ(tokens["texts"][0]["begins"], (json{0, 0, 7, 11, 0}));
  const json vectors = RunJson({"embed", "hello  goodbye", "world"});
  const json ids =
      RunJson({"encode", "--token-ids", "2,5,7,8,3", "--pooled", "mean", "--no-hidden-states"});
  EXPECT_EQ(vectors["embeddings"]["shape"], (json{2, 4}));
  EXPECT_EQ(vectors["embeddings"]["values"][0], ids["pooled"]["values"][0]);
  EXPECT_EQ(vectors["execution"]["tokens"], 8);
}

TEST_F(TextCommandsAndServerTest, LongTextsAreCutUnlessToldNotTo) {
  const std::string text = "world hello hello hello hello hello night";
  const json tokens = RunJson({"tokenize", text});
  EXPECT_EQ(tokens["texts"][0]["ids"], (json{2, 6, 5, 5, 5, 3}));
  EXPECT_EQ(tokens["texts"][0]["truncated"], true);
  EXPECT_EQ(RunJson({"tokenize", text, "--truncate", "left"})["texts"][0]["ids"],
            (json{2, 5, 5, 5, 9, 3}));
  EXPECT_EQ(RunJson({"embed", text})["execution"]["tokens"], 6);
  EXPECT_EQ(Run({"embed", text, "--model", "m", "--truncate", "none"}).exit_code, 1);
}

// A request takes 2,048 tokens, which the client assumes to be as many as bytes.
TEST_F(TextCommandsAndServerTest, ManyTextsAreSeveralRequests) {
  std::string lines;
  for (int i = 0; i < 2500; ++i) absl::StrAppend(&lines, i % 2 == 0 ? "hello\n" : "world night\n");
  folder_.Write("texts.txt", lines);
  const json vectors = RunJson({"embed", "--file", folder_.File("texts.txt")})["embeddings"];
  EXPECT_EQ(vectors["shape"], (json{2500, 4}));
  EXPECT_EQ(vectors["values"][2499], vectors["values"][1]);
  EXPECT_NE(vectors["values"][2499], vectors["values"][0]);
  // The index is that of the line, not of a place in one of the requests.
  folder_.Write("texts.txt", lines + "hello\xFF\nhello\n");
  for (const char* command : {"embed", "tokenize"}) {
    const Outcome wrong = Run({command, "--model", "m", "--file", folder_.File("texts.txt")});
    EXPECT_EQ(wrong.exit_code, 1);
    EXPECT_THAT(wrong.err, HasSubstr("INVALID_ARGUMENT: texts[2500]: expected UTF-8; got"));
  }
}

TEST_F(TextCommandsAndServerTest, EncodeTakesTexts) {
  const json rows = RunJson({"encode", "--text", "hello", "--text", "goodbye world"});
  EXPECT_EQ(rows["lengths"]["values"], (json{3, 5}));
  EXPECT_EQ(rows["hidden_states"]["shape"], (json{8, 4}));
  const json ids = RunJson({"encode", "--token-ids", "2,5,3"});
  EXPECT_EQ(rows["hidden_states"]["values"][2], ids["hidden_states"]["values"][0][2]);
}

TEST_F(TextCommandsAndServerTest, InspectLabelsMapsByTheTokensOfATextItself) {
  const json sequences = RunJson({"inspect", "--text", "hello goodbye"})["sequences"];
  ASSERT_EQ(sequences.size(), 1u);
  EXPECT_THAT(sequences[0].dump(), HasSubstr(R"(["[CLS]","hello","good","##bye","[SEP]"])"));
}

TEST_F(TextCommandsAndServerTest, ModelsWithoutTextsSayWhy) {
  for (const char* command : {"embed", "rerank", "classify", "tokenize"}) {
    const Outcome outcome = Run({command, "hello", "world", "--model", "t"});
    EXPECT_EQ(outcome.exit_code, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("model \"t\" does not accept texts: ")) << command;
  }
  EXPECT_THAT(Run({"classify", "hello", "--model", "m"}).err,
              HasSubstr("its checkpoint has no classification head"));
  EXPECT_THAT(Run({"models"}).out, HasSubstr("  texts, hidden states, token ids\n"));
}

class ClassifyAndServerTest : public TextCommandsAndServerTest {
 protected:
  ClassifyAndServerTest() : TextCommandsAndServerTest(2) {}
};

TEST_F(ClassifyAndServerTest, ScoresAreProbabilitiesOfLabels) {
  const json results = RunJson({"classify", "hello", "good night"})["results"];
  ASSERT_EQ(results.size(), 2u);
  for (const json& result : results) {
    EXPECT_NEAR(
        result["scores"][0]["score"].get<double>() + result["scores"][1]["score"].get<double>(),
        1.0, 1e-9);
    EXPECT_GE(result["scores"][0]["score"], result["scores"][1]["score"]);
  }
  EXPECT_THAT((std::vector<std::string>{results[0]["scores"][0]["label"],
                                        results[0]["scores"][1]["label"]}),
              ::testing::UnorderedElementsAre("good", "bad"));
  EXPECT_EQ(RunJson({"classify", "--pairs", "hello\tworld"})["execution"]["tokens"], 5);
}

// GetTokenizer, which names classes, needs a tokenizer.json.
TEST_F(ClassifyAndServerTest, ClassesOfAVocabularyAloneHaveNumbers) {
  std::filesystem::remove(folder_.File("tokenizer.json"));
  folder_.Write("vocab.txt", kVocabulary);
  const json scores = RunJson({"classify", "hello"})["results"][0]["scores"];
  EXPECT_THAT((std::vector<std::string>{scores[0]["label"], scores[1]["label"]}),
              ::testing::UnorderedElementsAre("LABEL_0", "LABEL_1"));
}

class RerankAndServerTest : public TextCommandsAndServerTest {
 protected:
  RerankAndServerTest() : TextCommandsAndServerTest(1) {}
};

TEST_F(RerankAndServerTest, TheBestTextIsFirst) {
  const json results = RunJson({"rerank", "hello", "world", "night", "good"})["results"];
  ASSERT_EQ(results.size(), 3u);
  EXPECT_GE(results[0]["score"], results[1]["score"]);
  EXPECT_GE(results[1]["score"], results[2]["score"]);
  const std::vector<std::string> texts = {"world", "night", "good"};
  for (const json& result : results) {
    EXPECT_EQ(result["text"], texts[result["index"].get<size_t>()]);
    const json alone = RunJson({"rerank", "hello", result["text"].get<std::string>()});
    EXPECT_EQ(alone["results"][0]["score"], result["score"]);
  }
}

}  // namespace text_commands_test
}  // namespace attendant::client
