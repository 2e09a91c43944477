#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "server/models/model_tokenizer.h"

namespace attendant::server {
namespace tokenizer_class_test {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr char kFile[] =
    R"({"version": "1.0", "added_tokens": [ {"content": "}\"],\\"} ] , "normalizer" : )"
    R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, )"
    R"("strip_accents": null, "lowercase": false},"pre_tokenizer":{"type": "BertPreTokenizer"}, )"
    R"("model": {"type": "WordPiece", "vocab": {"normalizer": 0, ":,{": 1}}})";

std::string Apply(const std::string& tokenizer_config, const std::string& config,
                  std::string file) {
  Tokenization tokenization;
  tokenization.tokenizer_json = file;
  ApplyTokenizerClass({{"tokenizer.json", std::move(file)},
                       {"tokenizer_config.json", tokenizer_config},
                       {"config.json", config}},
                      tokenization);
  return tokenization.tokenizer_json;
}

// Values of transformers 5.23, by tests/families/tokenizer_files.py ATTENDANT_TOKENIZER_CLASSES.
TEST(TokenizerClassTest, ReadsFilesAsTheLibrary) {
  std::ifstream stream(ATTENDANT_TOKENIZER_CLASSES);
  const Json cases = Json::parse(stream);
  EXPECT_GT(cases.size(), 20);
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"]);
    const std::string config = one["config"].is_null() ? "{}" : one["config"].dump();
    const std::string model = Json({{"model_type", one["model_type"]}}).dump();
    const std::string file = one["tokenizer"].dump();
    const Json made = Json::parse(Apply(config, model, file));
    EXPECT_EQ(made["normalizer"], one["normalizer"]);
    EXPECT_EQ(made["pre_tokenizer"], one["pre_tokenizer"]);
    EXPECT_EQ(made["post_processor"], one["post_processor"]);
    EXPECT_EQ(made["model"], one["tokenizer"]["model"]);
  }
}

TEST(TokenizerClassTest, ReplacesNothingElse) {
  const std::string made = Apply(R"({"tokenizer_class": "BertTokenizer"})", "{}", kFile);
  EXPECT_THAT(made, HasSubstr(R"("added_tokens": [ {"content": "}\"],\\"} ] , "normalizer" :)"));
  EXPECT_THAT(made, HasSubstr(R"("lowercase":true)"));
  EXPECT_THAT(made, HasSubstr(R"("vocab": {"normalizer": 0, ":,{": 1}})"));
  EXPECT_THAT(made, HasSubstr(R"("pre_tokenizer":{"type": "BertPreTokenizer"}, )"));
}

TEST(TokenizerClassTest, AddsWhatTheFileLacks) {
  const Json made = Json::parse(
      Apply("{}", R"({"model_type": "bert"})", R"({"model": {"type": "WordPiece", "vocab": {}}})"));
  EXPECT_EQ(made["normalizer"]["lowercase"], true);
  EXPECT_EQ(made["pre_tokenizer"]["type"], "BertPreTokenizer");
}

TEST(TokenizerClassTest, LeavesOtherFilesAsTheyAre) {
  const auto stays = [](const char* tokenizer_config, const char* config, const char* file) {
    return Apply(tokenizer_config, config, file) == file;
  };
  EXPECT_TRUE(stays(R"({"tokenizer_class": "PreTrainedTokenizerFast"})",
                    R"({"model_type": "bert"})", kFile));
  EXPECT_TRUE(stays("{}", R"({"model_type": "new"})", kFile));
  EXPECT_TRUE(stays(R"({"do_lower_case": false})", R"({"model_type": "bert"})", kFile));
  EXPECT_TRUE(stays("{}", R"({"tokenizer_class": "RobertaTokenizer"})", kFile));
  for (const char* broken : {"", "[]", "{", R"({"model": 7})", "null", "version https://git-lfs"}) {
    EXPECT_TRUE(stays("{}", R"({"model_type": "bert"})", broken));
  }
}

TEST(TokenizerClassTest, LeavesOutSpecialTokensIfTheModelDoes) {
  Tokenization tokenization;
  tokenization.tokenizer_json = R"({"post_processor": null, "model": {"type": "WordPiece"}})";
  tokenization.leaves_out_special_tokens = true;
  const std::map<std::string, std::string> files = {
      {"tokenizer.json",
       R"({"added_tokens": [{"id": 0, "content": "[CLS]"}, {"id": 1, "content": "[SEP]"}],
           "model": {"type": "WordPiece", "vocab": {}}})"},
      {"config.json", R"({"model_type": "bert"})"}};
  ApplyTokenizerClass(files, tokenization);
  const Json made = Json::parse(tokenization.tokenizer_json);
  EXPECT_EQ(made["normalizer"]["type"], "BertNormalizer");
  EXPECT_TRUE(made["post_processor"].is_null());
  tokenization.leaves_out_special_tokens = false;
  ApplyTokenizerClass(files, tokenization);
  EXPECT_EQ(Json::parse(tokenization.tokenizer_json)["post_processor"]["type"],
            "TemplateProcessing");
}

}  // namespace tokenizer_class_test
}  // namespace attendant::server
