#include "engine/checkpoint/read_tokenization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/files/tokenizer_json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace read_tokenization_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kTokenizer[] = R"({"version": "1.0", "added_tokens": [
  {"id": 0, "content": "[PAD]", "special": true}, {"id": 100, "content": "[UNK]", "special": true},
  {"id": 101, "content": "[CLS]", "special": true}], "model": {"vocab": {"added_tokens": 5}}})";

class ReadTokenizationTest : public ::testing::Test {
 protected:
  // Returns what is read of the folder, in which the transformer is too.
  Tokenization Read() {
    absl::StatusOr<Tokenization> read = ReadTokenization(folder_.path(), folder_.path(), warnings_);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *std::move(read) : Tokenization();
  }

  std::string Refusal() {
    const absl::Status status =
        ReadTokenization(folder_.path(), folder_.path(), warnings_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  // Makes a directory of sentence-transformers.
  void WriteModules() { folder_.Write("modules.json", "[]"); }

  TempFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(ReadTokenizationTest, NothingIsRequired) {
  const Tokenization read = Read();
  EXPECT_EQ(read.tokenizer_json, "");
  EXPECT_EQ(read.why_no_tokenizer, "its directory has no tokenizer.json");
  EXPECT_EQ(read.max_sequence_length, 0);
  EXPECT_FALSE(read.lower_case);
  EXPECT_THAT(read.prompts, IsEmpty());
  EXPECT_THAT(read.special_tokens, IsEmpty());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(ReadTokenizationTest, KeepsTheTokenizerAsItStands) {
  folder_.Write("tokenizer.json", kTokenizer);
  folder_.Write(
      "tokenizer_config.json",
      R"({"model_max_length": 512, "cls_token": "[CLS]", "unk_token": {"content": "[UNK]"},
                    "sep_token": "[SEP]", "mask_token": null})");
  folder_.Write("special_tokens_map.json", R"({"pad_token": "[PAD]", "cls_token": "[UNK]"})");
  const Tokenization read = Read();
  EXPECT_EQ(read.tokenizer_json, kTokenizer);
  EXPECT_EQ(read.max_sequence_length, 512);
  EXPECT_THAT(read.special_tokens, ElementsAre(Pair("cls", 101), Pair("pad", 0), Pair("unk", 100)));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(ReadTokenizationTest, SentenceTransformersHasTheLastWord) {
  WriteModules();
  folder_.Write("tokenizer_config.json", R"({"model_max_length": 512})");
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": true})");
  folder_.Write("config_sentence_transformers.json",
                R"({"prompts": {"query": "query: ", "": "", "none": null},
                    "default_prompt_name": "query"})");
  const Tokenization read = Read();
  EXPECT_EQ(read.max_sequence_length, 256);
  EXPECT_TRUE(read.lower_case);
  EXPECT_THAT(read.prompts,
              UnorderedElementsAre(Pair("query", "query: "), Pair("", ""), Pair("none", "")));
  EXPECT_EQ(read.default_prompt, "query");
}

// As the library, which makes a new model of such a directory.
TEST_F(ReadTokenizationTest, SettingsOfSentenceTransformersNeedModules) {
  folder_.Write("tokenizer_config.json", R"({"model_max_length": 512})");
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": true})");
  folder_.Write("config_sentence_transformers.json", R"({"prompts": {"query": "query: "},
                                                         "default_prompt_name": "query"})");
  const Tokenization read = Read();
  EXPECT_EQ(read.max_sequence_length, 512);
  EXPECT_FALSE(read.lower_case);
  EXPECT_THAT(read.prompts, IsEmpty());
  EXPECT_EQ(read.default_prompt, "");
  EXPECT_FALSE(read.files.contains("sentence_bert_config.json"));
  EXPECT_THAT(
      warnings_,
      ElementsAre(absl::StrCat(folder_.File("sentence_bert_config.json"),
                               ": not used without modules.json, as in sentence-transformers"),
                  absl::StrCat(folder_.File("config_sentence_transformers.json"),
                               ": not used without modules.json, as in sentence-transformers")));
}

// As MultiVectorEncoder of the library, which makes special tokens of the prefixes that are tokens.
TEST_F(ReadTokenizationTest, PrefixesOfPylateArePromptsOfSpecialTokens) {
  WriteModules();
  folder_.Write("tokenizer.json", R"({"model": {"type": "WordLevel",
      "vocab": {"[Q]": 4, "[MASK]": 5}},
      "added_tokens": [{"id": 7, "content": "[D] ", "normalized": true, "special": false}]})");
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length": 31})");
  folder_.Write("config_sentence_transformers.json",
                R"({"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] ",
                    "prompts": {"query": "ask: ", "document": "[D] say: "}, "query_length": 32,
                    "document_length": 300})");
  const Tokenization read = Read();
  EXPECT_THAT(read.prompts,
              UnorderedElementsAre(Pair("query", "[Q] ask: "), Pair("document", "[D] say: ")));
  EXPECT_EQ(read.max_sequence_length, 300);  // 31 is left of what was tokenized before it was saved
  EXPECT_THAT(read.task_lengths, UnorderedElementsAre(Pair("query", 32), Pair("document", 300)));
  ASSERT_TRUE(read.query_expansion.has_value());
  EXPECT_EQ(read.query_expansion->length, 32);
  EXPECT_EQ(read.tokenizer_json,
            R"({"model": {"type": "WordLevel",
      "vocab": {"[Q]": 4, "[MASK]": 5}},
      "added_tokens":[{"content":"[D] ","id":7,"normalized":false,"special":true},)"
            R"({"content":"[Q]","id":4,"lstrip":false,"normalized":false,"rstrip":false,)"
            R"("single_word":false,"special":true}]})");
}

TEST_F(ReadTokenizationTest, PrefixesThatAreNoTokensStayText) {
  WriteModules();
  folder_.Write("tokenizer.json", kTokenizer);
  folder_.Write("config_sentence_transformers.json",
                R"({"query_prefix": "query: ", "document_prefix": "",
                    "do_query_expansion": false})");
  const Tokenization read = Read();
  EXPECT_THAT(read.prompts, UnorderedElementsAre(Pair("query", "query: "), Pair("document", "")));
  EXPECT_EQ(read.tokenizer_json, kTokenizer);
}

TEST_F(ReadTokenizationTest, AnUnsetLengthLeavesTheTokenizersOwn) {
  WriteModules();
  folder_.Write("tokenizer_config.json", R"({"model_max_length": 512})");
  folder_.Write("sentence_roberta_config.json", R"({"max_seq_length": null})");
  EXPECT_EQ(Read().max_sequence_length, 512);
}

TEST_F(ReadTokenizationTest, ALengthWithoutBoundIsNone) {
  folder_.Write("tokenizer_config.json",
                R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(Read().max_sequence_length, 0);
}

TEST_F(ReadTokenizationTest, ALengthMayHaveItsOldName) {
  folder_.Write("tokenizer_config.json", R"({"max_len": 128})");
  EXPECT_EQ(Read().max_sequence_length, 128);
  folder_.Write("tokenizer_config.json", R"({"max_len": 128, "model_max_length": 512})");
  EXPECT_EQ(Read().max_sequence_length, 512);
}

TEST_F(ReadTokenizationTest, TheModelsPositionsBoundTheTokenizersLength) {
  WriteModules();
  folder_.Write("config.json", R"({"max_position_embeddings": 512})");
  EXPECT_EQ(Read().max_sequence_length, 512);
  folder_.Write("tokenizer_config.json", R"({"model_max_length": 8192})");
  EXPECT_EQ(Read().max_sequence_length, 512);
  folder_.Write("tokenizer_config.json", R"({"model_max_length": 128})");
  EXPECT_EQ(Read().max_sequence_length, 128);
  folder_.Write("config.json", R"({"max_position_embeddings": -1})");  // of XLNet
  EXPECT_EQ(Read().max_sequence_length, 128);
  folder_.Write("config.json", R"({"max_position_embeddings": 512})");
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length": 600})");
  EXPECT_EQ(Read().max_sequence_length, 600);
}

// As transformers 5.23 with the same files.
TEST_F(ReadTokenizationTest, TheSideOfTruncationIsThatOfTheSettingsOrElseOfTheTokenizer) {
  EXPECT_FALSE(Read().truncates_left);
  folder_.Write("tokenizer.json", R"({"truncation": {"direction": "Left", "max_length": 9},
      "padding": {"direction": "Right"}, "model": {"type": "WordLevel"}})");
  EXPECT_TRUE(Read().truncates_left);
  folder_.Write("tokenizer_config.json", R"({"truncation_side": "right"})");
  EXPECT_FALSE(Read().truncates_left);
  folder_.Write("tokenizer.json", kTokenizer);
  folder_.Write("tokenizer_config.json", R"({"truncation_side": "left"})");
  EXPECT_TRUE(Read().truncates_left);
  folder_.Write("tokenizer_config.json", R"({"truncation_side": "Left"})");
  EXPECT_FALSE(Read().truncates_left);
  EXPECT_THAT(warnings_, testing::ElementsAre(testing::EndsWith(
                             "tokenizer_config.json: truncation_side: expected one of right, "
                             "left; got 'Left'")));
}

TEST_F(ReadTokenizationTest, ATokenizerThatCannotBeReadIsNone) {
  const std::pair<std::string, const char*> faults[] = {
      {"", "expected JSON; the file is empty"},
      {"[]", "expected an object with an object model"},
      {R"({"added_tokens": []})", "expected an object with an object model"},
      {R"({"model": {}, "added_tokens": 7})", "expected an object with a list of added_tokens"},
      {R"({"model": {"vocab": {"a": )", "not strict JSON in UTF-8"},
      {R"({"model": {"vocab": {"a": 1e999}}})", "not strict JSON in UTF-8"},
      {"{\"model\": {\"\xff\": 1}}", "not strict JSON in UTF-8"}};
  for (const auto& [text, reason] : faults) {
    warnings_.clear();
    folder_.Write("tokenizer.json", text);
    const Tokenization read = Read();
    EXPECT_EQ(read.tokenizer_json, "");
    EXPECT_EQ(read.why_no_tokenizer, absl::StrCat("its tokenizer.json cannot be read: ", reason));
    EXPECT_THAT(warnings_, ElementsAre(absl::StrCat(folder_.File("tokenizer.json"), ": ", reason,
                                                    "; the model takes only token ids")));
  }
}

// The tokenizer itself is not loaded then.
TEST_F(ReadTokenizationTest, DeepValuesOfTheTokenizerAreLeftOut) {
  const std::string deep = absl::StrCat(R"({"model": {}, "added_tokens": [)",
                                        std::string(1 << 20, '['), std::string(1 << 20, ']'), "]}");
  folder_.Write("tokenizer.json", deep);
  EXPECT_TRUE(Read().tokenizer_json == deep);
  EXPECT_THAT(ReadTokenIds(deep, {"a"}), IsEmpty());
  std::string edited = deep;
  MakeSpecial({"[D] "}, edited);
  EXPECT_TRUE(edited == deep);
}

TEST_F(ReadTokenizationTest, SentencePieceModelsAreKeptOnlyWithoutATokenizer) {
  folder_.Write("spm.model", "pieces");
  folder_.Write("other.model", "of something else");
  EXPECT_THAT(Read().files, ElementsAre(Pair("spm.model", "pieces")));
  folder_.Write("tokenizer.json", kTokenizer);
  EXPECT_THAT(Read().files, ElementsAre(Pair("tokenizer.json", kTokenizer)));
}

TEST_F(ReadTokenizationTest, ALinkThatLeadsNowhereIsNoMissingFile) {
  std::filesystem::create_symlink("gone", folder_.File("tokenizer.json"));
  EXPECT_EQ(
      Read().why_no_tokenizer,
      "its tokenizer.json cannot be read: expected a file; got a symbolic link to a missing file");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the model takes only token ids")));
}

TEST_F(ReadTokenizationTest, FaultsOfItsOtherFilesAreWarnings) {
  folder_.Write("tokenizer.json", kTokenizer);
  folder_.Write("tokenizer_config.json", R"({"model_max_length": )");
  folder_.Write("special_tokens_map.json", "7");
  EXPECT_EQ(Read().tokenizer_json, kTokenizer);
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("tokenizer_config.json: refused JSON: not strict JSON"),
                          HasSubstr("special_tokens_map.json: expected an object; got 7")));
}

TEST_F(ReadTokenizationTest, FaultsOfSentenceTransformersAreRefused) {
  WriteModules();
  folder_.Write("sentence_bert_config.json",
                "version https://git-lfs.github.com/spec/v1\n"
                "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
                "size 90868376\n");
  EXPECT_THAT(Refusal(), HasSubstr("sentence_bert_config.json: expected the file itself; got a Git "
                                   "LFS pointer to it"));
  folder_.Write("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("sentence_bert_config.json"), HasSubstr("max_seq_length"),
                               HasSubstr("got 0")));
  folder_.Write("sentence_bert_config.json", R"({"do_lower_case": "yes"})");
  EXPECT_THAT(Refusal(), HasSubstr("do_lower_case"));
  folder_.Write("sentence_bert_config.json", "{}");
  folder_.Write("config_sentence_transformers.json", R"({"prompts": {"query": 3}})");
  EXPECT_THAT(Refusal(), HasSubstr("prompts: expected a string for 'query'; got 3"));
  folder_.Write("config_sentence_transformers.json", R"({"default_prompt_name": "query"})");
  EXPECT_THAT(Refusal(),
              HasSubstr("default_prompt_name: expected the name of a prompt; got 'query'"));
}

TEST_F(ReadTokenizationTest, IsReadWithTheCheckpoint) {
  folder_.Write("config.json", TinyBertConfig());
  folder_.Write("model.safetensors", MakeSafetensors(TinyBertTensors()));
  folder_.Write("tokenizer.json", kTokenizer);
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder_.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tokenization.tokenizer_json, kTokenizer);
}

TEST(MaxSequenceLengthTest, IsTheSmallerOfThoseThatThereAre) {
  const EmbeddingShape any = {}, some = {.positions = 514, .first_position = 2};
  Tokenization meant;
  EXPECT_EQ(MaxSequenceLength(any, meant), 0);
  EXPECT_EQ(MaxSequenceLength(some, meant), 512);
  meant.max_sequence_length = 256;
  EXPECT_EQ(MaxSequenceLength(any, meant), 256);
  EXPECT_EQ(MaxSequenceLength(some, meant), 256);
  meant.max_sequence_length = 1024;
  EXPECT_EQ(MaxSequenceLength(some, meant), 512);
}

TEST(MakeSpecialTest, TakesNullForAnEmptyListOfAddedTokens) {
  for (const char* added : {"", R"("added_tokens": null,)", R"("added_tokens": [],)"}) {
    std::string tokenizer = absl::StrCat("{", added, R"("model": {"vocab": {"[D]": 7}}})");
    MakeSpecial({"[D] "}, tokenizer);
    EXPECT_THAT(tokenizer, HasSubstr(R"("content":"[D]","id":7)")) << added;
  }
}

}  // namespace read_tokenization_test
}  // namespace attendant
