// Test vectors that were run with PyPI's tokenizers 0.23.3.
#include "server/text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/text/shown.h"

namespace attendant::text {
namespace {

const char kBytes[] = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false})";

std::string Metaspace(const std::string& scheme) {
  return R"({"type":"Metaspace","replacement":"▁","prepend_scheme":")" + scheme + "\"}";
}

std::string Split(const std::string& pattern, const std::string& behavior) {
  return absl::StrCat(R"({"type":"Split","invert":false,"pattern":)", pattern, R"(,"behavior":")",
                      behavior, "\"}");
}

TEST(PreTokenizerTest, MetaspaceStandsForSpaces) {
  EXPECT_EQ(ShowPieces(Metaspace("always"), "a  b ", true), "▁a0:1 ▁1:2 ▁b2:4 ▁4:5");
  EXPECT_EQ(ShowPieces(R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)" +
                           Metaspace("first") + "]}",
                       " a b", true),
            "a1:2 b3:4");
}

TEST(PreTokenizerTest, BertIsolatesPunctuation) {
  EXPECT_EQ(ShowPieces(R"({"type":"BertPreTokenizer"})", "stop$1.5\u3000中、x"),
            "stop|$|1|.|5|中|、|x");
}

TEST(PreTokenizerTest, ByteLevelSplitsAsGpt2) {
  EXPECT_EQ(ShowPieces(kBytes, "Hello  world", true), "Hello0:5 Ġ5:6 Ġworld6:12");
  EXPECT_EQ(ShowPieces(kBytes, "a\n\nb"), "a|Ċ|Ċ|b");
  EXPECT_EQ(ShowPieces(kBytes, "you'LL 123abc"), "you|'|LL|Ġ123|abc");
  EXPECT_EQ(ShowPieces(R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})", "\ta",
                       true),
            "Ġ0:1 ĉ0:1 a1:2");
}

TEST(PreTokenizerTest, Llama3AndQwenSplitNumbersAndLines) {
  const std::string rest =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}%| ?[^\\s\\p{L}\\p{N}]+)"
      R"([\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
  const auto pattern = [&](const std::string& digits) {
    std::string regex = rest;
    regex.replace(regex.find('%'), 1, digits);
    return Split(R"({"Regex":")" + regex + "\"}", "Isolated");
  };
  const char text[] = "Hello  World's 12345 ,\n\n  x\r\n y";
  EXPECT_EQ(ShowPieces(pattern("{1,3}"), text), "Hello|_|_World|'s|_|123|45|_,\n\n|_|_x|\r\n|_y");
  EXPECT_EQ(ShowPieces(pattern(""), text), "Hello|_|_World|'s|_|1|2|3|4|5|_,\n\n|_|_x|\r\n|_y");
  EXPECT_EQ(ShowPieces(pattern("{1,3}"), "I'LL'ſ 'ſx"), "I|'LL|'ſ|_'|ſx");
}

TEST(PreTokenizerTest, ClipDropsSpaces) {
  const std::string clip =
      R"({"type":"Split","invert":true,"behavior":"Removed","pattern":{"Regex":)"
      R"("'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"}})";
  EXPECT_EQ(ShowPieces(clip, "it's  12 a-b!"), "it|'s|1|2|a|-|b|!");
}

TEST(PreTokenizerTest, SplitKnowsFiveBehaviors) {
  const std::string dash = R"({"String":"-"})";
  EXPECT_EQ(ShowPieces(Split(dash, "Removed"), "a-b--c"), "a|b|c");
  EXPECT_EQ(ShowPieces(Split(dash, "Isolated"), "a-b--c"), "a|-|b|-|-|c");
  EXPECT_EQ(ShowPieces(Split(dash, "MergedWithPrevious"), "a-b--c"), "a-|b-|-|c");
  EXPECT_EQ(ShowPieces(Split(dash, "MergedWithNext"), "a-b--c"), "a|-b|-|-c");
  EXPECT_EQ(ShowPieces(Split(dash, "Contiguous"), "a-b--c"), "a|-|b|--|c");
}

TEST(PreTokenizerTest, SmallOnes) {
  EXPECT_EQ(ShowPieces(R"({"type":"Whitespace"})", "a_1 b--!c"), "a_1|b|--!|c");
  EXPECT_EQ(ShowPieces(R"({"type":"Digits","individual_digits":true})", "a12²"), "a|1|2|²");
  EXPECT_EQ(ShowPieces(R"({"type":"Digits","individual_digits":false})", "a12²"), "a|12²");
  EXPECT_EQ(ShowPieces(R"({"type":"Punctuation"})", "a.,b"), "a|.|,|b");
  EXPECT_EQ(ShowPieces(R"({"type":"FixedLength","length":2})", "abcde"), "ab|cd|e");
  EXPECT_EQ(ShowPieces(R"({"type":"CharDelimiterSplit","delimiter":"-"})", "a--b"), "a|b");
}

TEST(PreTokenizerTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(ShowPieces(Split(R"({"Regex":"a|b"})", "Isolated"), "x"),
            "pre_tokenizer.pattern.Regex: \"a|b\" not supported; use a String, or the pattern of "
            "GPT-2, Llama 3, Qwen or CLIP");
  EXPECT_EQ(ShowPieces(Split(R"({"String":"a"})", "Odd"), "x"),
            "pre_tokenizer.behavior: expected Removed, Isolated, MergedWithPrevious, "
            "MergedWithNext or Contiguous; got \"Odd\"");
  EXPECT_EQ(ShowPieces(R"({"type":"UnicodeScripts"})", "x").substr(0, 49),
            "pre_tokenizer.type: \"UnicodeScripts\" not supporte");
  EXPECT_EQ(ShowPieces(R"({"type":"FixedLength","length":0})", "x"),
            "pre_tokenizer.length: expected 1 or more; got 0");
}

}  // namespace
}  // namespace attendant::text
