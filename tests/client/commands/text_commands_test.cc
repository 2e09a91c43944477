#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/files/tensor_file.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/client/support/fake_server.h"
#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace text_commands_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// Gives a program other texts on stdin, while it lives.
class Stdin {
 public:
  explicit Stdin(const std::string& text) : text_(text), before_(std::cin.rdbuf(text_.rdbuf())) {}
  ~Stdin() { std::cin.rdbuf(before_); }

 private:
  std::istringstream text_;
  std::streambuf* const before_;
};

class TextCommandsTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--address", server_.address()});
    return RunWith(arguments);
  }

  json RunJson(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  std::string FileWith(const std::string& text) const {
    const std::string path = ScratchPath("texts.txt");
    std::ofstream(path) << text;
    return path;
  }

  FakeServer server_;
};

TEST_F(TextCommandsTest, EmbedSendsTextsAsTheModelTakesThem) {
  const Outcome outcome =
      Run({"embed", "hello world", "[MASK]", "--prompt-name", "query", "--normalize"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("embeddings float32 [2, 2]\n"));
  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_THAT(sent.texts(), ElementsAre("hello world", "[MASK]"));
  EXPECT_EQ(sent.prompt_name(), "query");
  EXPECT_FALSE(sent.has_prompt());
  EXPECT_EQ(sent.truncation(), v1::TRUNCATE_RIGHT);
  EXPECT_EQ(sent.pooling(), v1::MEAN);
  EXPECT_TRUE(sent.return_pooled() && sent.normalize_pooled() && sent.omit_hidden_states());

  Run({"embed", "models", "--prompt", "", "--truncate", "none"});
  EXPECT_THAT(server_.encoded().at(1).texts(), ElementsAre("models"));
  EXPECT_TRUE(server_.encoded().at(1).has_prompt());
  EXPECT_EQ(server_.encoded().at(1).truncation(), v1::NO_TRUNCATION);
  EXPECT_EQ(Run({"embed", "x", "--prompt", "a", "--prompt-name", "b"}).exit_code, 2);
}

TEST_F(TextCommandsTest, TextsAreCutOnTheSideOfTheirTokenizer) {
  server_.set_truncates_left(true);
  Run({"embed", "x"});
  Run({"embed", "x", "--truncate", "right"});
  EXPECT_EQ(server_.encoded().at(0).truncation(), v1::TRUNCATE_LEFT);
  EXPECT_EQ(server_.encoded().at(1).truncation(), v1::TRUNCATE_RIGHT);
  Run({"tokenize", "x"});
  EXPECT_EQ(server_.tokenized().at(0).truncation(), v1::TRUNCATE_LEFT);
  Run({"encode", "--text", "x"});
  Run({"encode", "--text", "x", "--truncate", "right"});
  Run({"encode", "--token-ids", "1"});
  EXPECT_EQ(server_.encoded().at(2).truncation(), v1::TRUNCATE_LEFT);
  EXPECT_EQ(server_.encoded().at(3).truncation(), v1::TRUNCATE_RIGHT);
  EXPECT_EQ(server_.encoded().at(4).truncation(), v1::NO_TRUNCATION);
  Run({"inspect", "--text", "x"});
  EXPECT_EQ(server_.tokenized().at(1).truncation(), v1::TRUNCATE_LEFT);
}

TEST_F(TextCommandsTest, TextsComeFromAFileOrStdinALineEach) {
  const json document = RunJson({"embed", "--file", FileWith("one\r\n\ntwo\n")});
  EXPECT_THAT(server_.encoded().at(0).texts(), ElementsAre("one", "", "two"));
  EXPECT_EQ(document["embeddings"]["shape"], (json{3, 2}));
  {
    const Stdin stdin_text("three\nfour");
    Run({"embed"});
    EXPECT_THAT(server_.encoded().at(1).texts(), ElementsAre("three", "four"));
  }
  Run({"embed", "--file",
       FileWith("\xEF\xBB\xBF"
                "five\n")});
  EXPECT_THAT(server_.encoded().at(2).texts(), ElementsAre("five"));
  const Stdin nothing("");
  const Outcome none = Run({"embed", "--file", "-"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err, "attendant-client: stdin: expected texts, one per line; got none\n");
  EXPECT_EQ(Run({"embed", "x", "--file", "-"}).exit_code, 2);
  EXPECT_EQ(Run({"embed", "--file", "/no/such/file"}).exit_code, 2);
}

TEST_F(TextCommandsTest, TextsMayComeFromAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "one\ntwo\n", 8), 8);
  close(ends[1]);
  const Outcome outcome = Run({"embed", "--file", "/dev/fd/" + std::to_string(ends[0])});
  close(ends[0]);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(server_.encoded().at(0).texts(), ElementsAre("one", "two"));
}

TEST_F(TextCommandsTest, EmbedWritesAFile) {
  const std::string output = ScratchPath("vectors.npy");
  ASSERT_EQ(Run({"embed", "a", "b", "--output", output}).exit_code, 0);
  EXPECT_THAT(ReadTensor(output)->shape, ElementsAre(2, 2));
}

TEST_F(TextCommandsTest, ManyTextsAreSentInSeveralRequests) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "a\n";
  const std::string file = FileWith(lines);
  // Each may have a byte, 8 special tokens, and those of a prompt.
  EXPECT_EQ(RunJson({"embed", "--file", file, "--prompt", ""})["embeddings"]["shape"],
            (json{3000, 2}));
  EXPECT_THAT(server_.encoded(), SizeIs(3));
  EXPECT_EQ(RunJson({"embed", "--file", file})["execution"]["tokens"], 3000);
  EXPECT_THAT(server_.encoded(), SizeIs(3 + 50));
  EXPECT_EQ(RunJson({"tokenize", "--file", file, "--prompt", ""})["texts"].size(), 3000u);
  EXPECT_THAT(server_.tokenized(), SizeIs(3));
  server_.set_status({grpc::StatusCode::INVALID_ARGUMENT, "texts[3]: too long"});
  EXPECT_THAT(Run({"embed", "--file", file, "--prompt", ""}).err,
              HasSubstr("INVALID_ARGUMENT: texts[3]: too long\n"));
  server_.set_status({grpc::StatusCode::INVALID_ARGUMENT, "texts: too many"});
  EXPECT_THAT(Run({"embed", "--file", file, "--prompt", ""}).err,
              HasSubstr("INVALID_ARGUMENT: texts 0..1023: texts: too many\n"));
}

TEST_F(TextCommandsTest, RerankPrintsTheBestTextFirst) {
  server_.set_classes(1);
  const Outcome outcome = Run({"rerank", "query", "four", "longest", "sixsix"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // The sigmoids of 0.4, 0.7 and 0.6.
  EXPECT_EQ(outcome.out,
            "     SCORE  INDEX  TEXT\n"
            "  0.668188      1  longest\n"
            "  0.645656      2  sixsix\n"
            "  0.598688      0  four\n");
  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_THAT(sent.texts(), ElementsAre("query", "query", "query"));
  EXPECT_THAT(sent.text_pairs(), ElementsAre("four", "longest", "sixsix"));
  EXPECT_EQ(sent.pooling(), v1::CLASSIFIER);
  const json document =
      RunJson({"rerank", "query", "--file", FileWith("a\nbb\n"), "--top-n", "1", "--raw-scores"});
  ASSERT_EQ(document["results"].size(), 1u);
  EXPECT_EQ(document["results"][0]["index"], 1);
  EXPECT_EQ(document["results"][0]["text"], "bb");
  EXPECT_FLOAT_EQ(document["results"][0]["score"], 0.2);
}

TEST_F(TextCommandsTest, RerankScoresByTheVectorsOfTheQuery) {
  server_.set_multi_vector(true);
  const Outcome outcome = Run({"rerank", "query", "four", "longest", "sixsix"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "     SCORE  INDEX  TEXT\n"
            "  7.000000      1  longest\n"
            "  6.000000      2  sixsix\n"
            "  4.000000      0  four\n");
  ASSERT_EQ(server_.encoded().size(), 2u);
  const v1::EncodeRequest query = server_.encoded().at(0), texts = server_.encoded().at(1);
  EXPECT_THAT(query.texts(), ElementsAre("query"));
  EXPECT_EQ(query.task(), "query");
  EXPECT_TRUE(query.return_token_vectors() && query.omit_hidden_states());
  EXPECT_THAT(texts.texts(), ElementsAre("four", "longest", "sixsix"));
  EXPECT_EQ(texts.text_pairs_size(), 0);
  EXPECT_EQ(texts.task(), "document");
  EXPECT_FALSE(texts.return_pooled());
  EXPECT_THAT(texts.query_vectors().shape(), ElementsAre(1, 2));
}

TEST_F(TextCommandsTest, RerankRefusesModelsOfSeveralClasses) {
  server_.set_classes(2);
  const Outcome outcome = Run({"rerank", "query", "text"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("FAILED_PRECONDITION: model \"a\" does not rank texts: "
                                     "expected 1 class or token vectors; got 2 classes; use "
                                     "classify\n"));
  EXPECT_EQ(Run({"rerank"}).exit_code, 2);
}

TEST_F(TextCommandsTest, ClassifyPrintsLabelsWithScores) {
  server_.set_classes(2);
  const Outcome outcome = Run({"classify", "0123456789", "x"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // Softmax over (1, 0) and (0.1, 0).
  EXPECT_EQ(outcome.out,
            "0123456789\n"
            "  good  0.731059\n"
            "  bad   0.268941\n"
            "x\n"
            "  good  0.524979\n"
            "  bad   0.475021\n");
  const json document = RunJson({"classify", "--pairs", "a\tbcde", "--top-n", "1"});
  EXPECT_THAT(server_.encoded().at(1).texts(), ElementsAre("a"));
  EXPECT_THAT(server_.encoded().at(1).text_pairs(), ElementsAre("bcde"));
  EXPECT_EQ(document["results"][0]["text_pair"], "bcde");
  EXPECT_EQ(document["results"][0]["scores"].size(), 1u);
  EXPECT_EQ(document["results"][0]["scores"][0]["label"], "good");
  const json raw = RunJson({"classify", "0123456789", "--raw-scores"});
  EXPECT_EQ(raw["results"][0]["scores"][0]["score"], 1.0);
  EXPECT_EQ(Run({"classify", "--pairs", "a"}).err,
            "attendant-client: --pairs: expected two texts separated by a tab; got 1 in text "
            "0, \"a\"\n");
}

TEST_F(TextCommandsTest, ClassifyRefusesModelsWithoutClasses) {
  const Outcome outcome = Run({"classify", "x"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("its checkpoint has no classification head\n"));
}

TEST_F(TextCommandsTest, TokenizeShowsTokensAndTheirPlaces) {
  const Outcome outcome = Run({"tokenize", "hello", "--no-special-tokens", "--truncate", "left"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "hello\n"
            "2 tokens\n"
            "      ID  TOKEN           RANGE     TEXT\n"
            "     101  [CLS]\n"
            "       7  ▁hello          0..5      hello\n");
  EXPECT_TRUE(server_.tokenized().at(0).omit_special_tokens());
  EXPECT_EQ(server_.tokenized().at(0).truncation(), v1::TRUNCATE_LEFT);
  const json document = RunJson({"tokenize", "a", "bc"});
  EXPECT_EQ(document["texts"][1]["text"], "bc");
  EXPECT_EQ(document["texts"][1]["ids"], (json{101, 7}));
  EXPECT_EQ(document["texts"][1]["byte_ends"], (json{0, 2}));
  EXPECT_EQ(document["texts"][1]["tokens"], (json{"[CLS]", "▁bc"}));
}

TEST_F(TextCommandsTest, AModelThatTakesNoTextsSaysWhy) {
  for (const char* command : {"embed", "classify", "tokenize"}) {
    const Outcome outcome = Run({command, "hello", "--model", "b"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(
        outcome.err,
        HasSubstr("FAILED_PRECONDITION: model \"b\" does not accept texts: its directory has no "
                  "tokenizer.json; `attendant-client encode --token-ids` sends token ids"));
  }
}

TEST_F(TextCommandsTest, EncodeTakesTexts) {
  const json document = RunJson({"encode", "--text", "abc", "--text", "de", "--prompt", "p"});
  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_THAT(sent.texts(), ElementsAre("abc", "de"));
  EXPECT_EQ(sent.prompt(), "p");
  EXPECT_EQ(sent.truncation(), v1::TRUNCATE_RIGHT);
  EXPECT_EQ(document["hidden_states"]["shape"], (json{5, 2}));
  EXPECT_EQ(document["lengths"]["values"], (json{3, 2}));
  EXPECT_FALSE(RunJson({"encode", "--text", "abc"}).contains("lengths"));
  EXPECT_EQ(Run({"encode", "--text", "a", "--token-ids", "1"}).exit_code, 2);
  EXPECT_EQ(Run({"encode", "--text", "a", "--chunk", "1"}).exit_code, 2);
  EXPECT_EQ(Run({"encode", "--token-ids", "1", "--prompt-name", "query"}).exit_code, 2);
}

TEST_F(TextCommandsTest, InspectSendsTheTokensOfTexts) {
  // The fake server's answer is not attention.
  EXPECT_EQ(Run({"inspect", "--text", "abc", "--text", "d"}).exit_code, 1);
  EXPECT_THAT(server_.tokenized().at(0).texts(), ElementsAre("abc", "d"));
  EXPECT_THAT(server_.encoded().at(0).token_ids().shape(), ElementsAre(4));
  EXPECT_THAT(server_.encoded().at(0).lengths(), ElementsAre(2, 2));
  EXPECT_EQ(Run({"inspect", "--text", "a", "--tokens", "b"}).exit_code, 2);
}

TEST_F(TextCommandsTest, EncodeSaysWhereTextsGo) {
  EXPECT_THAT(Run({"encode", "hello"}).err,
              HasSubstr("unexpected argument \"hello\"; use --text for texts"));
  EXPECT_THAT(Run({"encode", "--token-ids", "hello"}).err,
              HasSubstr("--token-ids: expected FILE.npy, FILE.safetensors or ids such as "
                        "101,7592,102; got \"hello\"; use `encode --text` for texts"));
}

}  // namespace text_commands_test
}  // namespace attendant::client
