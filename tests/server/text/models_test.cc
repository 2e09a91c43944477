// Test vectors that were run with PyPI's tokenizers 0.23.3.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/text/models/score.h"
#include "tests/server/text/shown.h"

namespace attendant::text {
namespace {

// "a b" as the keys of an object, with their places as values.
std::string Vocab(const std::string& tokens) {
  std::vector<std::string> entries;
  for (const absl::string_view token : absl::StrSplit(tokens, ' ')) {
    entries.push_back(absl::StrCat("\"", token, "\":", entries.size()));
  }
  return "{" + absl::StrJoin(entries, ",") + "}";
}

// Merges as "a b,b c".
std::string Bpe(const std::string& tokens, const std::string& merges,
                const std::string& options = "") {
  std::vector<std::string> list;
  for (const absl::string_view merge : absl::StrSplit(merges, ',', absl::SkipEmpty())) {
    list.push_back(absl::StrCat("\"", merge, "\""));
  }
  return absl::StrCat(R"({"type":"BPE","vocab":)", Vocab(tokens), R"(,"merges":[)",
                      absl::StrJoin(list, ","), "]", options, "}");
}

std::string Unigram(const std::string& pieces, const std::string& options = "") {
  return absl::StrCat(R"({"type":"Unigram","unk_id":0,"vocab":[["U",0.0],)", pieces, "]", options,
                      "}");
}

std::string WordPiece(const std::string& tokens, const std::string& longest = "100") {
  return absl::StrCat(R"({"type":"WordPiece","unk_token":"U","continuing_subword_prefix":"##",)",
                      R"("max_input_chars_per_word":)", longest, R"(,"vocab":)", Vocab(tokens),
                      "}");
}

TEST(WordPieceTest, TakesTheLongestTokens) {
  const std::string json = WordPiece("U un ##aff ##able");
  EXPECT_EQ(ShowTokens(json, "unaffable"), "un0:2 ##aff2:5 ##able5:9");
  EXPECT_EQ(ShowTokens(json, "unaffx"), "U0:6");
  EXPECT_EQ(ShowTokens(WordPiece("U a ##a", "3"), "aaa"), "a0:1 ##a1:2 ##a2:3");
  EXPECT_EQ(ShowTokens(WordPiece("U a ##a", "3"), "aaaa"), "U0:4");
}

TEST(BpeTest, MergesTheLowestRankFirst) {
  EXPECT_EQ(ShowTokens(Bpe("a b c ab bc", "a b,b c"), "abc"), "ab0:2 c2:3");
  EXPECT_EQ(ShowTokens(Bpe("a b c ab bc", "b c,a b"), "abc"), "a0:1 bc1:3");
  EXPECT_EQ(ShowTokens(Bpe("a b c ab bc", "a b,b c,a b"), "abc"), "a0:1 bc1:3");
  EXPECT_EQ(ShowTokens(Bpe("a aa aaa aaaa", "a a,aa a,aa aa"), "aaaaa"), "aa0:2 aaa2:5");
}

TEST(BpeTest, LongPiecesAreMergedAsShortOnes) {
  const std::string json = Bpe("a aa aaa aaaa", "a a,aa a,aa aa");
  EXPECT_EQ(ShowTokens(json, std::string(35, 'a')), [] {
    std::string shown;
    for (int i = 0; i < 8; ++i) absl::StrAppend(&shown, "aaaa", 4 * i, ":", 4 * i + 4, " ");
    return shown + "aaa32:35";
  }());
}

TEST(BpeTest, UnknownCharactersAreDroppedOrOneTokenOrMany) {
  EXPECT_EQ(ShowTokens(Bpe("a b", ""), "éab"), "a0:1 b0:1");
  EXPECT_EQ(ShowTokens(Bpe("a b U", "", R"(,"unk_token":"U")"), "axyb"), "a0:1 U1:2 U2:3 b3:4");
  EXPECT_EQ(ShowTokens(Bpe("a b U", "", R"(,"unk_token":"U","fuse_unk":true)"), "axyb"),
            "a0:1 U1:3 b3:4");
}

TEST(BpeTest, FallsBackToBytes) {
  EXPECT_EQ(ShowTokens(Bpe("a <0xC3> <0xA9>", "", R"(,"byte_fallback":true)"), "é"),
            "<0xC3>0:1 <0xA9>0:1");
  EXPECT_EQ(
      ShowTokens(Bpe("a U <0xC3> <0xA9>", "", R"(,"unk_token":"U","byte_fallback":true)"), "中éa"),
      "<0xC3>0:1 <0xA9>0:1 U0:2 a2:3");
}

TEST(BpeTest, SuffixEndsAWord) {
  const std::string json =
      Bpe("a b a</w> b</w> ab</w>", "a b</w>", R"(,"end_of_word_suffix":"</w>")");
  EXPECT_EQ(ShowTokens(json, "ab"), "ab</w>0:2");
  EXPECT_EQ(ShowTokens(json, "a"), "a</w>0:1");
  EXPECT_EQ(ShowTokens(json, "ba"), "b0:1 a</w>1:2");
}

TEST(BpeTest, IgnoresMergesForAPieceOfTheVocabulary) {
  EXPECT_EQ(ShowTokens(Bpe("a b ab", "", R"(,"ignore_merges":true)"), "ab"), "ab0:2");
  EXPECT_EQ(ShowTokens(Bpe("a b ab", ""), "ab"), "a0:1 b1:2");
}

TEST(BpeTest, RefusesWhatItCannotDo) {
  EXPECT_EQ(ShowTokens(Bpe("a b", "", R"(,"dropout":0.1)"), "a"),
            "model.dropout: 0.1 not supported; use null");
  EXPECT_EQ(ShowTokens(Bpe("a b", "a b"), "a"),
            "model.merges[0]: expected tokens of the vocabulary; got \"ab\"");
  EXPECT_EQ(ShowTokens(Bpe("a b", "a"), "a"), "model.merges[0]: expected two tokens; got \"a\"");
  EXPECT_EQ(ShowTokens(Bpe("a", "", R"(,"unk_token":"U")"), "a"),
            "model.unk_token: expected a token of the vocabulary; got \"U\"");
  EXPECT_EQ(ShowTokens(Bpe("a", "", R"(,"byte_fallback":true,"end_of_word_suffix":"x")"), "a"),
            "model.byte_fallback: expected false (there is a continuing_subword_prefix or "
            "end_of_word_suffix); got true");
}

// Tokens are shown by their names in an object, which Unigram has not: by their ids' places.
TEST(UnigramTest, TakesTheHighestSumAndTheEarliestOfEqualOnes) {
  const auto shown = [](const std::string& pieces, const std::string& text,
                        const std::string& options = "") {
    return ShowTokens(Unigram(pieces, options), text);
  };
  EXPECT_EQ(shown(R"(["a",-1],["b",-1],["ab",-2])", "ab"), "ab0:2");
  EXPECT_EQ(shown(R"(["a",-1],["b",-1],["ab",-2],["c",-1],["bc",-2])", "abc"), "a0:1 bc1:3");
  EXPECT_EQ(shown(R"(["a",-0.1],["b",-0.2],["ab",-0.3])", "ab"), "ab0:2");
  EXPECT_EQ(shown(R"(["ab",-1],["abc",-2])", "xaybz"), "U0:5");
}

TEST(UnigramTest, ARepeatedPieceHasItsLastId) {
  const std::string words = Unigram(R"(["a",-1],["a",-5])");
  EXPECT_EQ(ShowEncoding(R"({"version":"1.0","model":)" + words + "}", "a"), "2 0:1");
}

TEST(UnigramTest, BytesOfUnknownCharactersHaveThePlaceOfAll) {
  std::string pieces = R"(["a",-1])";
  for (const absl::string_view byte : {"C3", "A9", "E4", "B8", "AD"}) {
    absl::StrAppend(&pieces, ",[\"<0x", byte, ">\",-9]");
  }
  EXPECT_EQ(ShowTokens(Unigram(pieces, R"(,"byte_fallback":true)"), "aé中a"),
            "a0:1 <0xC3>1:3 <0xA9>1:3 <0xE4>1:3 <0xB8>1:3 <0xAD>1:3 a3:4");
}

TEST(UnigramTest, RefusesWrongPieces) {
  EXPECT_EQ(ShowTokens(Unigram(R"(["a"])"), "a"),
            "model.vocab[1]: expected a token and its score; got an array");
  EXPECT_EQ(ShowTokens(R"({"type":"Unigram","unk_id":3,"vocab":[["U",0]]})", "a"),
            "model.unk_id: expected less than 1; got 3");
  EXPECT_EQ(ShowTokens(R"({"type":"Unigram","unk_id":null,"vocab":[["U",0]]})", "a"),
            "model.unk_id: expected an integer in 0..4294967295; got null");
}

// As files of tokenizers before 0.10, whose models have no type.
TEST(ModelTest, KeysDecideWithoutAType) {
  const auto untyped = [](const std::string& json) {
    return "{" + json.substr(json.find(',') + 1);
  };
  EXPECT_EQ(ShowTokens(untyped(WordPiece("U un ##able")), "unable"), "un0:2 ##able2:6");
  EXPECT_EQ(ShowTokens(untyped(Bpe("a b ab", "a b")), "ab"), "ab0:2");
  EXPECT_EQ(ShowTokens(untyped(Unigram(R"(["ab",-1])")), "ab"), "ab0:2");
  EXPECT_EQ(ShowTokens(R"({"vocab":{"ab":3,"U":1},"unk_token":"U"})", "ab"), "ab0:2");
  EXPECT_EQ(ShowTokens(R"({"type":7})", "ab"), "model.type: expected a string; got 7");
}

TEST(WordPieceTest, RefusesWhatItCannotDo) {
  EXPECT_EQ(ShowTokens(WordPiece("a"), "a"),
            "model.unk_token: expected a token of the vocabulary; got \"U\"");
  EXPECT_EQ(ShowTokens(WordPiece("U", "1001"), "a"),
            "model.max_input_chars_per_word: expected 0..1000; got 1001");
  EXPECT_EQ(ShowTokens(R"({"type":"Odd"})", "a"),
            "model.type: \"Odd\" not supported; use WordPiece, BPE, Unigram or WordLevel");
}

// Of serde_json 1, which the original reads scores with: digits, then a division.
TEST(ScoreTest, RoundsAsTheOriginal) {
  EXPECT_EQ(ParseScore("-3.5"), -3.5);
  EXPECT_EQ(ParseScore("-10"), -10.0);
  EXPECT_EQ(ParseScore("12e-1"), 12.0 / 10.0);
  EXPECT_EQ(ParseScore("-9.8123456789012345"), -(98123456789012345.0 / 1e16));
  EXPECT_EQ(ParseScore("1e400"), std::nullopt);
}

}  // namespace
}  // namespace attendant::text
