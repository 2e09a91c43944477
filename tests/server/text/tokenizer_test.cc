// Test vectors that were run with PyPI's tokenizers 0.23.3; refusals; hostile texts.
#include "server/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/server/text/shown.h"

namespace attendant::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kLowercase[] = R"({"type":"Lowercase"})";

std::string Encoded(const std::string& words, const std::string& added, const std::string& text,
                    const std::string& normalizer = "null") {
  return ShowEncoding(WordTokenizer(words, added, normalizer), text);
}

// Words "a b x y" have the ids 1 to 4; U is 0.
TEST(AddedTokensTest, TakeWhitespaceIn) {
  EXPECT_EQ(Encoded("a b x y", Added(5, "<m>", "lstrip"), "a  <m> b"), "1 0:1 5 1:6 2 7:8");
}

TEST(AddedTokensTest, SingleWordsHaveNoNeighbours) {
  const std::string foo = Added(5, "foo", "single_word");
  EXPECT_EQ(Encoded("a b x y", foo, "-foo-"), "0 0:1 5 1:4 0 4:5");
  EXPECT_EQ(Encoded("a b x y", foo, "foo\u0301"), "0 0:4");
  EXPECT_EQ(Encoded("a b x y", foo, "foo²"), "5 0:3 0 3:4");
}

TEST(AddedTokensTest, AreFoundInTheTextOrInWhatItIsNormalizedTo) {
  EXPECT_EQ(Encoded("a b x y", Added(5, "Foo", "normalized"), "xFoO", kLowercase), "3 0:1 5 1:4");
  EXPECT_EQ(Encoded("a b x y", Added(5, "Foo"), "foo", kLowercase), "0 0:3");
  EXPECT_EQ(
      Encoded("a b x y", Added(5, "AB") + "," + Added(6, "abc", "normalized"), "xABcy", kLowercase),
      "3 0:1 5 1:3 0 3:5");
}

TEST(AddedTokensTest, TheLongestFromTheLeftIsFound) {
  const std::string three = Added(5, "ab") + "," + Added(6, "abcd") + "," + Added(7, "bcde");
  EXPECT_EQ(Encoded("a b x y", three, "abcde"), "6 0:4 0 4:5");
  EXPECT_EQ(Encoded("a b x y", Added(5, "abc", "single_word") + "," + Added(6, "ab"), "abcd"),
            "0 0:4");
}

TEST(AddedTokensTest, AnIdThatTheOriginalWouldNotGiveIsRefused) {
  EXPECT_EQ(Encoded("a b", Added(11, "<m>"), "a"),
            "added_tokens[0].id: expected 3 (its place in the vocabulary, or the next one after "
            "it); got 11");
  EXPECT_EQ(Encoded("a b", Added(3, std::string(257, 'a')), "a"),
            "added_tokens[0].content: expected at most 256 bytes; got 257");
}

TEST(AddedTokensTest, OneThatTheNormalizerRemovesIsRefused) {
  const std::string strip = R"({"type":"Strip","strip_left":true,"strip_right":true})";
  EXPECT_EQ(Encoded("a b", Added(3, "\\n", "normalized"), "a", strip),
            "added_tokens: a token that the normalizer removes (\"\\n\") is not supported; use "
            "\"normalized\": false");
  EXPECT_EQ(Encoded("a b", Added(3, "\\n"), "a\n", strip), "1 0:1 3 1:2");
}

// Metaspace with all words of the test: ▁ 1, ▁a 2, ▁b 3, b 4, a 5; <s> is 6.
std::string MetaspaceTokenizer(const std::string& scheme) {
  return absl::StrReplaceAll(
      WordTokenizer("▁ ▁a ▁b b a", Added(6, "<s>")),
      {{R"({"type":"WhitespaceSplit"})",
        R"({"type":"Metaspace","replacement":"▁","prepend_scheme":")" + scheme + "\"}"}});
}

TEST(TokenizerTest, MetaspaceKnowsTheFirstPiece) {
  EXPECT_EQ(ShowEncoding(MetaspaceTokenizer("first"), "a<s>b"), "2 0:1 6 1:4 4 4:5");
  EXPECT_EQ(ShowEncoding(MetaspaceTokenizer("always"), "a<s>b"), "2 0:1 6 1:4 3 4:5");
}

// Words as BPE of bytes would give them, and a post-processor.
std::string ByteTokenizer(const std::string& processor, const std::string& words) {
  return absl::StrReplaceAll(
      WordTokenizer(words, ""),
      {{R"({"type":"WhitespaceSplit"})",
        R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false})"},
       {R"("post_processor":null)", R"("post_processor":)" + processor}});
}

TEST(TokenizerTest, PlacesAreTrimmed) {
  const auto trims = [](bool prefix) {
    return absl::StrCat(R"({"type":"ByteLevel","trim_offsets":true,"add_prefix_space":)",
                        prefix ? "true" : "false", "}");
  };
  EXPECT_EQ(ShowEncoding(ByteTokenizer(trims(false), "Ġ Ġa Ġb"), " a"), "2 1:2");
  EXPECT_EQ(ShowEncoding(ByteTokenizer(trims(false), "Ġ Ġa Ġb"), "  a b"), "1 1:1 2 2:3 3 4:5");
  EXPECT_EQ(ShowEncoding(ByteTokenizer(trims(true), "Ġ Ġa Ġb"), " a"), "2 0:2");
  EXPECT_EQ(ShowEncoding(ByteTokenizer(trims(true), "Ġ Ġa Ġb"), "  a b"), "1 0:0 2 2:3 3 4:5");
}

// As the original, which trims the unknown space, but not the token of its byte.
TEST(TokenizerTest, PlacesOfBytesAreNotTrimmed) {
  const auto encode = [](const char* pieces) {
    return ShowEncoding(
        absl::StrCat(R"({"version":"1.0","post_processor":{"type":"ByteLevel",)",
                     R"("trim_offsets":true,"add_prefix_space":false},"model":{"type":"Unigram",)",
                     R"("unk_id":0,"byte_fallback":true,"vocab":[["U",0],["a",-1])", pieces, "]}}"),
        "a a");
  };
  EXPECT_EQ(encode(R"(,["<0x20>",-9])"), "1 0:1 2 1:2 1 2:3");
  EXPECT_EQ(encode(""), "1 0:1 0 2:2 1 2:3");
}

constexpr char kBert[] = R"({"type":"BertProcessing","cls":["a",1],"sep":["b",2]})";

std::unique_ptr<Tokenizer> Load(const std::string& json) {
  auto tokenizer = Tokenizer::Load(json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::unique_ptr<Tokenizer> WithProcessor(const std::string& processor) {
  return Load(
      absl::StrReplaceAll(WordTokenizer("a b x y", ""),
                          {{R"("post_processor":null)", R"("post_processor":)" + processor}}));
}

TEST(TokenizerTest, PairsHaveTypesAndSpecialTokens) {
  const auto encoding = WithProcessor(kBert)->EncodePair("x", "y é", {});
  ASSERT_TRUE(encoding.ok());
  EXPECT_THAT(encoding->ids, ElementsAre(1, 3, 2, 4, 0, 2));
  EXPECT_THAT(encoding->type_ids, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(encoding->text_of, ElementsAre(2, 0, 2, 1, 1, 2));
  EXPECT_EQ(encoding->code_points[4].end, 3u);
  EXPECT_EQ(encoding->bytes[4].end, 4u);
}

TEST(TokenizerTest, RobertaHasTwoSeparatorsAndOneType) {
  const auto tokenizer = WithProcessor(
      R"({"type":"RobertaProcessing","cls":["a",1],"sep":["b",2],"trim_offsets":true,)"
      R"("add_prefix_space":false})");
  const auto encoding = tokenizer->EncodePair("x", "y", {});
  ASSERT_TRUE(encoding.ok());
  EXPECT_THAT(encoding->ids, ElementsAre(1, 3, 2, 2, 4, 2));
  EXPECT_THAT(encoding->type_ids, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(tokenizer->special_tokens(true), 4u);
}

TEST(TokenizerTest, TemplatesSayWhatIsAddedAndItsTypes) {
  const std::string cls = R"({"SpecialToken":{"id":"c","type_id":0}})";
  const std::string first = R"({"Sequence":{"id":"A","type_id":0}})";
  const std::string second = R"({"Sequence":{"id":"B","type_id":2}})";
  const auto json = [&](const std::string& single) {
    return absl::StrCat(R"({"type":"TemplateProcessing","single":[)", single, R"(],"pair":[)",
                        first, ",", cls, ",", second,
                        R"(],"special_tokens":{"c":{"id":"c","ids":[1,2],"tokens":["a","b"]}}})");
  };
  const auto tokenizer = WithProcessor(json(cls + "," + first));
  EXPECT_THAT(tokenizer->Encode("x", {})->ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(tokenizer->EncodePair("x", "y", {})->type_ids, ElementsAre(0, 0, 0, 2));
  EncodeOptions plain;
  plain.add_special_tokens = false;
  EXPECT_THAT(tokenizer->EncodePair("x", "y", plain)->ids, ElementsAre(3, 4));

  const auto refusal = [](const std::string& processor) {
    return ShowEncoding(
        absl::StrReplaceAll(WordTokenizer("a b", ""),
                            {{R"("post_processor":null)", R"("post_processor":)" + processor}}),
        "a");
  };
  EXPECT_EQ(refusal(json(second)),
            "post_processor.single[0]: expected A (there is one text); got B");
  EXPECT_EQ(refusal(json(R"({"SpecialToken":{"id":"d","type_id":0}})")),
            "post_processor.single[0].id: expected a key of special_tokens; got \"d\"");
  EXPECT_THAT(refusal(R"({"type":"Odd"})"),
              HasSubstr("post_processor.type: \"Odd\" not supported"));
  EXPECT_THAT(
      refusal(absl::StrCat(R"({"type":"Sequence","processors":[)", kBert, ",", kBert, "]}")),
      HasSubstr("a second processor that adds tokens is not supported"));
}

// Pairs of lengths, cut to 10 tokens of which 3 are added.
TEST(TokenizerTest, TheLongerTextOfAPairIsCutFirst) {
  const auto tokenizer = WithProcessor(kBert);
  const auto cut = [&](int first, int second) {
    EncodeOptions options;
    options.max_length = 10;
    std::string texts[2];
    for (int i = 0; i < first; ++i) texts[0] += "x ";
    for (int i = 0; i < second; ++i) texts[1] += "y ";
    const auto encoding = tokenizer->EncodePair(texts[0], texts[1], options);
    EXPECT_TRUE(encoding->truncated);
    const auto count = [&](uint32_t id) {
      return std::count(encoding->ids.begin(), encoding->ids.end(), id);
    };
    return absl::StrCat(count(3), ",", count(4));
  };
  EXPECT_EQ(cut(5, 5), "3,4");
  EXPECT_EQ(cut(8, 2), "5,2");
  EXPECT_EQ(cut(4, 6), "3,4");
  EXPECT_EQ(cut(2, 8), "2,5");
}

TEST(TokenizerTest, EitherSideIsCut) {
  const auto tokenizer = WithProcessor(kBert);
  EncodeOptions options;
  options.max_length = 4;
  EXPECT_THAT(tokenizer->Encode("a b x y", options)->ids, ElementsAre(1, 1, 2, 2));
  options.truncation_side = TruncationSide::kLeft;
  EXPECT_THAT(tokenizer->Encode("a b x y", options)->ids, ElementsAre(1, 3, 4, 2));
  EXPECT_EQ(tokenizer->Encode("a b x y", options)->code_points[1].begin, 4u);
  options.max_length = 1;
  EXPECT_EQ(tokenizer->Encode("a", options).status().message(),
            "max_length: expected at least 2 (tokens that are added); got 1");
}

TEST(TokenizerTest, RefusesTextsThatAreNotUtf8) {
  const auto tokenizer = WithProcessor("null");
  const auto message = [&](const std::string& text) {
    return std::string(tokenizer->Encode(text, {}).status().message());
  };
  EXPECT_EQ(message("a\xC3"), "text: expected UTF-8; got something else at byte 1");
  EXPECT_EQ(message("ab\xED\xA0\x80"), "text: expected UTF-8; got something else at byte 2");
  EXPECT_EQ(message("\xC0\x80"), "text: expected UTF-8; got something else at byte 0");
  EXPECT_EQ(message("\xF4\x90\x80\x80"), "text: expected UTF-8; got something else at byte 0");
  EXPECT_EQ(tokenizer->EncodePair("a", "\xFF", {}).status().message(),
            "text_pair: expected UTF-8; got something else at byte 0");
  EXPECT_EQ(message(std::string(Tokenizer::kMaxTextBytes + 1, 'a')),
            "text: expected at most 1048576 bytes; got 1048577");
}

TEST(TokenizerTest, EmptyTextsHaveNoTokensOfTheirOwn) {
  EXPECT_THAT(WithProcessor(kBert)->Encode("", {})->ids, ElementsAre(1, 2));
  EXPECT_THAT(WithProcessor("null")->Encode(" ", {})->ids, ElementsAre());
}

TEST(TokenizerTest, RefusesOtherVersionsAndKeys) {
  EXPECT_EQ(Tokenizer::Load("[]").status().message(),
            "tokenizer.json: expected an object; got an array");
  EXPECT_THAT(std::string(Tokenizer::Load("{").status().message()),
              HasSubstr("tokenizer.json: expected JSON"));
  EXPECT_EQ(Tokenizer::Load(R"({"version":"2.0"})").status().message(),
            "version: 2.0 not supported; use 1.0");
  EXPECT_THAT(std::string(Tokenizer::Load(R"({"odd":1})").status().message()),
              HasSubstr("odd: this key is not supported"));
  EXPECT_EQ(Tokenizer::Load("{}").status().message(), "model: expected a value; got no such key");
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  EXPECT_THAT(std::string(Tokenizer::Load(deep).status().message()),
              HasSubstr("at most 64 nested values"));
}

TEST(TokenizerTest, RefusesNormalizersThatMultiplyTexts) {
  const std::string step =
      R"({"type":"Replace","pattern":{"String":"a"},"content":")" + std::string(60, 'a') + "\"}";
  EXPECT_EQ(Encoded("a", "", "a",
                    absl::StrCat(R"({"type":"Sequence","normalizers":[)", step, ",", step, "]}")),
            "normalizer: a character that may become 3600 is not supported; use 2048 or less");
}

// The texts of the ids from 0 on, with "-" for those that have none.
std::string Texts(const std::string& model, const std::string& added) {
  const auto tokenizer = Load(
      absl::StrCat(R"({"version":"1.0","added_tokens":[)", added, R"(],"model":)", model, "}"));
  std::vector<std::string> texts;
  for (uint32_t id = 0; id <= tokenizer->id_limit(); ++id) {
    const std::string text = tokenizer->TokenText(id);
    texts.push_back(text.empty() ? "-" : text);
  }
  return absl::StrJoin(texts, " ");
}

TEST(TokenizerTest, TextsOfIdsAreThoseOfTheVocabulary) {
  EXPECT_EQ(Texts(R"({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
                  R"("max_input_chars_per_word":100,)"
                  R"("vocab":{"[UNK]":0,"un":1,"##able":2,"unable":4,"中":5}})",
                  Added(0, "[UNK]") + "," + Added(5, "x")),
            "[UNK] un ##able - unable x -");
  EXPECT_EQ(
      Texts(R"({"type":"BPE","vocab":{"Ġ":0,"t":1,"Ġt":3},"merges":["Ġ t"]})", Added(3, "<s>")),
      "Ġ t - <s> -");
  EXPECT_EQ(Texts(R"({"type":"Unigram","unk_id":0,)"
                  R"("vocab":[["<unk>",0],["▁the",-1],["a",-2],["a",-3]]})",
                  Added(4, "<m>")),
            "<unk> ▁the a a <m> -");
  EXPECT_EQ(Texts(R"({"type":"WordLevel","unk_token":"U","vocab":{"U":0,"a":7}})", Added(2, "x")),
            "U - x - - - - a -");
  const auto lowercase =
      Load(WordTokenizer("a", Added(2, "Foo", "normalized") + "," + Added(3, "Bar"), kLowercase));
  EXPECT_EQ(lowercase->TokenText(2), "foo");
  EXPECT_EQ(lowercase->TokenText(3), "Bar");
}

TEST(TokenizerTest, HostileTextsTakeLinearTime) {
  const auto tokenizer =
      Load(R"({"version":"1.0","normalizer":{"type":"BertNormalizer","clean_text":true,)"
           R"("handle_chinese_chars":true,"strip_accents":true,"lowercase":true},)"
           R"("pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece",)"
           R"("unk_token":"[UNK]","continuing_subword_prefix":"##",)"
           R"("max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"##a":2}}})");
  std::string marks = "a";
  while (marks.size() < Tokenizer::kMaxTextBytes - 4) marks += "\u0315\u0300";
  for (const std::string& text : {std::string(Tokenizer::kMaxTextBytes, 'a'), marks,
                                  std::string(Tokenizer::kMaxTextBytes, '\n')}) {
    EXPECT_TRUE(tokenizer->Encode(text, {}).ok());
  }
}

}  // namespace
}  // namespace attendant::text
