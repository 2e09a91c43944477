// Test vectors that were run with PyPI's tokenizers 0.23.3.
#include "server/text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/text/base/json_tree.h"
#include "tests/server/text/shown.h"

namespace attendant::text {
namespace {

using ::testing::HasSubstr;

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

constexpr char kSpaces[] = R"(|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";

// A Split at a regular expression, as it stands in a JSON text.
std::string Isolated(const std::string& regex) {
  return Split(absl::StrCat(R"({"Regex":")", regex, "\"}"), "Isolated");
}

// Words with one case each; `ends` follows them.
std::string CasePattern(const std::string& ends, const std::string& digits) {
  const std::string upper = R"([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}])";
  const std::string lower = R"([\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}])";
  return Isolated(absl::StrCat(upper, "*", lower, "+", ends, "|", upper, "+", lower, "*", ends, "|",
                               digits, R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*)", kSpaces));
}

TEST(PreTokenizerTest, Gpt4oAndTekkenSplitAtUpperCase) {
  const char text[] = "HelloWorld's XMLParser_ 12345 //\n/x  y";
  const std::string gpt4o = CasePattern("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", R"(\\p{N}{1,3})");
  EXPECT_EQ(ShowPieces(gpt4o, text), "Hello|World's|_XMLParser|_|_|123|45|_//\n/|x|_|_y");
  EXPECT_EQ(ShowPieces(gpt4o, "\u0301ABC ABC\u0301DE aB\u01C5c IT'S"),
            "\u0301|ABC|_ABC\u0301|DE|_a|B\u01C5c|_IT'S");
  const std::string tekken = CasePattern("", R"(\\p{N})");
  EXPECT_EQ(ShowPieces(tekken, text), "Hello|World|'s|_XMLParser|_|_|1|2|3|4|5|_//\n/|x|_|_y");
}

TEST(PreTokenizerTest, Qwen35TakesMarksForLetters) {
  const std::string qwen = Isolated(
      absl::StrCat(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|)",
                   R"( ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*)", kSpaces));
  EXPECT_EQ(ShowPieces(qwen, "\u0301ABC ABC\u0301DE aB\u01C5c IT'S"),
            "\u0301ABC|_ABC\u0301DE|_aB\u01C5c|_IT|'S");
  EXPECT_EQ(ShowPieces(qwen, "cafe\u0301 x\u0301 \u0301 9\u0301"),
            "cafe\u0301|_x\u0301|_\u0301|_|9|\u0301");
}

TEST(PreTokenizerTest, DeepSeekSplitsThreeTimes) {
  // The published file has ends of lines as they are in its third pattern.
  std::string words = absl::StrCat(
      R"([!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?)",
      R"([\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+)");
  const std::string all =
      absl::StrCat(R"({"type":"Sequence","pretokenizers":[)", Isolated(R"(\\p{N}{1,3})"), ",",
                   Isolated("[一-龥぀-ゟ゠-ヿ]+"), ",", Isolated(words), "]}");
  EXPECT_EQ(ShowPieces(all, "HelloWorld's XMLParser_ 12345 //\n/x  y"),
            "HelloWorld|'s|_XMLParser|_|_|123|45|_//\n|/x|_|_y");
  EXPECT_EQ(ShowPieces(all, "$abc ==\n\n  1234中文かな,abc ??\r\n x"),
            "$abc|_==\n\n|__|123|4|中文かな|,abc|_??\r\n|_x");
  EXPECT_EQ(ShowPieces(all, "cafe\u0301 x\u0301 \u0301 9\u0301"),
            "cafe\u0301|_x\u0301|_\u0301|_|9|\u0301");
}

// Each of the million digits is a piece; looking at all that follow would take hours.
TEST(PreTokenizerTest, LongNumbersTakeLinearTime) {
  const auto tree = JsonTree::Parse(
      Isolated(absl::StrCat(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|)",
                            R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*)", kSpaces)),
      "pre_tokenizer");
  const auto pre_tokenizer = LoadPreTokenizer((*tree)->root(), "pre_tokenizer");
  ASSERT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  Pieces pieces;
  ASSERT_TRUE(AppendItems(std::string(1 << 20, '7'), pieces.items));
  pieces.pieces = {{0, 1 << 20}};
  pre_tokenizer->apply(pieces);
  EXPECT_EQ(pieces.pieces.size(), size_t{1} << 20);
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

TEST(PreTokenizerTest, SplitKnowsRunsAndCharacters) {
  const auto split = [](const std::string& regex, const std::string& behavior,
                        const std::string& text) {
    return ShowPieces(Split(R"({"Regex":")" + regex + "\"}", behavior), text);
  };
  const std::string spaces = R"(\\s+)", text = "a  b\n c ";
  EXPECT_EQ(split(spaces, "Removed", text), "a|b|c");
  EXPECT_EQ(split(spaces, "Isolated", text), "a|__|b|\n_|c|_");
  EXPECT_EQ(split(spaces, "MergedWithPrevious", text), "a__|b\n_|c_");
  EXPECT_EQ(split(spaces, "MergedWithNext", text), "a|__b|\n_c|_");
  const std::string lines = R"(\\s{2,}|[\\n\\r\\t])";
  EXPECT_EQ(split(lines, "Removed", "a\u00A0b\nc \td e"), "a\u00A0b|c|d_e");
  EXPECT_EQ(split(lines, "Isolated", "a\u00A0b\nc \td e"), "a\u00A0b|\n|c|_\t|d_e");
  EXPECT_EQ(split(" {2,}", "Isolated", "a b  c   d"), "a_b|__|c|___|d");
  EXPECT_EQ(split(" {2,}", "MergedWithNext", "a b  c   d"), "a_b|__c|___d");
  EXPECT_EQ(split(R"([!\\-.])", "Isolated", "a-b.c!!d"), "a|-|b|.|c|!|!|d");
  EXPECT_EQ(split(R"([!\\-.])", "Contiguous", "a-b.c!!d"), "a|-|b|.|c|!!|d");
}

TEST(PreTokenizerTest, SplitKeepsTextsWithoutAMatch) {
  for (const char* pattern : {R"({"String":"-"})", R"({"Regex":"\\s+"})", R"({"Regex":"[!]"})"}) {
    for (const char* behavior :
         {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}) {
      EXPECT_EQ(ShowPieces(Split(pattern, behavior), "ab"), "ab") << pattern << behavior;
    }
    const std::string inverted = absl::StrCat(
        R"({"type":"Split","invert":true,"behavior":"Removed","pattern":)", pattern, "}");
    EXPECT_EQ(ShowPieces(inverted, "ab"), "") << pattern;
  }
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
            "pre_tokenizer.pattern.Regex: \"a|b\" not supported; use a String, the pattern of "
            "GPT-2, GPT-4o, Llama 3, Qwen, DeepSeek, Tekken or CLIP, \" {2,}\", \"\\\\s+\", "
            "\"\\\\s{2,}|[\\\\n\\\\r\\\\t]\" or single characters in brackets");
  const std::string longer(300, 'a');
  EXPECT_THAT(ShowPieces(Split(R"({"Regex":")" + longer + "\"}", "Isolated"), "x"),
              HasSubstr("\"" + longer + "\" not supported"));
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
