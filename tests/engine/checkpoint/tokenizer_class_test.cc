#include "engine/checkpoint/files/tokenizer_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/files/input_file.h"

namespace attendant {
namespace tokenizer_class_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFile[] =
    R"({"version": "1.0", "added_tokens": [ {"content": "}\"],\\"} ] , "normalizer" : )"
    R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, )"
    R"("strip_accents": null, "lowercase": false},"pre_tokenizer":{"type": "BertPreTokenizer"}, )"
    R"("model": {"type": "WordPiece", "vocab": {"normalizer": 0, ":,{": 1}}})";

std::string Apply(const char* tokenizer_config, const char* config, std::string file,
                  std::vector<std::string>& warnings) {
  ApplyTokenizerClass(Json::parse(tokenizer_config), Json::parse(config), file, warnings);
  return file;
}

// Values of transformers 5.23, by tests/families/tokenizer_files.py ATTENDANT_TOKENIZER_CLASSES.
TEST(TokenizerClass, ReadsFilesAsTheLibrary) {
  const absl::StatusOr<std::string> text =
      ReadSmallFile(ATTENDANT_TOKENIZER_CLASSES, int64_t{1} << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const Json cases = Json::parse(*text);
  EXPECT_GT(cases.size(), 20);
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"]);
    std::string file = one["tokenizer"].dump();
    std::vector<std::string> warnings;
    const Json config = one["config"].is_null() ? Json::object() : one["config"];
    ApplyTokenizerClass(config, {{"model_type", one["model_type"]}}, file, warnings);
    const Json made = Json::parse(file);
    EXPECT_EQ(made["normalizer"], one["normalizer"]);
    EXPECT_EQ(made["pre_tokenizer"], one["pre_tokenizer"]);
    EXPECT_EQ(made["post_processor"], one["post_processor"]);
    EXPECT_EQ(made["model"], one["tokenizer"]["model"]);
    EXPECT_EQ(warnings.empty(), file == one["tokenizer"].dump());
  }
}

TEST(TokenizerClass, ReplacesNothingElse) {
  std::vector<std::string> warnings;
  const std::string made = Apply(R"({"tokenizer_class": "BertTokenizer"})", "{}", kFile, warnings);
  EXPECT_THAT(made, HasSubstr(R"("added_tokens": [ {"content": "}\"],\\"} ] , "normalizer" :)"));
  EXPECT_THAT(made, HasSubstr(R"("lowercase":true)"));
  EXPECT_THAT(made, HasSubstr(R"("vocab": {"normalizer": 0, ":,{": 1}})"));
  EXPECT_THAT(made, HasSubstr(R"("pre_tokenizer":{"type": "BertPreTokenizer"}, )"));
  EXPECT_THAT(warnings,
              ElementsAre("tokenizer.json: replaced its normalizer, as transformers does for "
                          "BertTokenizer with the flags of tokenizer_config.json"));
}

TEST(TokenizerClass, AddsWhatTheFileLacks) {
  std::vector<std::string> warnings;
  const std::string made = Apply("{}", R"({"model_type": "bert"})",
                                 R"({"model": {"type": "WordPiece", "vocab": {}}})", warnings);
  EXPECT_EQ(Json::parse(made)["normalizer"]["lowercase"], true);
  EXPECT_EQ(Json::parse(made)["pre_tokenizer"]["type"], "BertPreTokenizer");
}

TEST(TokenizerClass, LeavesOtherFilesAsTheyAre) {
  std::vector<std::string> warnings;
  const auto stays = [&](const char* tokenizer_config, const char* config, const char* file) {
    return Apply(tokenizer_config, config, file, warnings) == file;
  };
  EXPECT_TRUE(stays(R"({"tokenizer_class": "PreTrainedTokenizerFast"})",
                    R"({"model_type": "bert"})", kFile));
  EXPECT_TRUE(stays("{}", R"({"model_type": "new"})", kFile));
  EXPECT_TRUE(stays(R"({"do_lower_case": false})", R"({"model_type": "bert"})", kFile));
  EXPECT_TRUE(stays("{}", R"({"tokenizer_class": "RobertaTokenizer"})", kFile));
  for (const char* broken : {"", "[]", "{", R"({"model": 7})", "null", "version https://git-lfs"}) {
    EXPECT_TRUE(stays("{}", R"({"model_type": "bert"})", broken));
  }
  EXPECT_THAT(warnings, IsEmpty());
}

}  // namespace tokenizer_class_test
}  // namespace attendant
