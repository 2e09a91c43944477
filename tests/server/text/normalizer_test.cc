// Test vectors that were run with PyPI's tokenizers 0.23.3.
#include "server/text/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/text/base/json_tree.h"
#include "tests/server/text/shown.h"

namespace attendant::text {
namespace {

using ::testing::HasSubstr;

std::string Bert(const std::string& lowercase = "true", const std::string& strip = "null") {
  return absl::StrCat(R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)",
                      R"("strip_accents":)", strip, R"(,"lowercase":)", lowercase, "}");
}

std::string Plain(const std::string& type) { return R"({"type":")" + type + "\"}"; }

TEST(NormalizerTest, BertStripsAccentsAndLowercases) {
  EXPECT_EQ(ShowNormalized(Bert(), "Ça"), "c0:1 a1:2");
  EXPECT_EQ(ShowNormalized(Bert(), "C\u0327a"), "c0:1 a2:3");
  EXPECT_EQ(ShowNormalized(Bert(), "ΑΣ"), "α0:1 σ1:2");
}

TEST(NormalizerTest, BertPutsSpacesAroundIdeographs) {
  EXPECT_EQ(ShowNormalized(Bert(), "a中b"), "a0:1 _1:2 中1:2 _1:2 b2:3");
}

TEST(NormalizerTest, BertRemovesControlCharacters) {
  EXPECT_EQ(ShowNormalized(Bert(), std::string("\0a\x0B", 3) + "b\u0085\tc\u200D"),
            "a1:2 b3:4 _5:6 c6:7");
}

TEST(NormalizerTest, BertKeepsWhatItIsToldToKeep) {
  EXPECT_EQ(ShowNormalized(Bert("false"), "Ça"), "Ç0:1 a1:2");
  EXPECT_EQ(ShowNormalized(Bert("true", "false"), "İI"), "i0:1 \u03070:1 i1:2");
}

TEST(NormalizerTest, NfcComposesAndSortsMarks) {
  EXPECT_EQ(ShowNormalized(Plain("NFC"), "e\u0301x"), "é0:1 x2:3");
  EXPECT_EQ(ShowNormalized(Plain("NFC"), "a\u0315\u0300\u05AE\u0300b"),
            "à0:1 \u05AE2:3 \u03003:4 \u03154:5 b5:6");
}

TEST(NormalizerTest, NfkdDecomposes) {
  EXPECT_EQ(ShowNormalized(Plain("NFKD"), "Å\u1E9B\u0323"),
            "A0:1 \u030A0:1 s1:2 \u03232:3 \u03072:3");
}

TEST(NormalizerTest, HangulIsComposedAndDecomposed) {
  EXPECT_EQ(ShowNormalized(Plain("NFD"), "각"), "\u11000:1 \u11610:1 \u11A80:1");
  EXPECT_EQ(ShowNormalized(Plain("NFC"), "\u1100\u1161\u11A8"), "각0:1");
}

TEST(NormalizerTest, ReplaceTakesThePlaceOfTheLastCharacter) {
  EXPECT_EQ(
      ShowNormalized(R"({"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "})", " a \n b"),
      "_0:1 a1:2 _4:5 b5:6");
}

TEST(NormalizerTest, ReplaceKnowsLongRunsAndLines) {
  EXPECT_EQ(ShowNormalized(
                R"({"type":"Replace","pattern":{"Regex":"\\s{2,}|[\\n\\r\\t]"},"content":" "})",
                "a\u00A0b\nc \td"),
            "a0:1 \u00A01:2 b2:3 _3:4 c4:5 _6:7 d7:8");
}

TEST(NormalizerTest, ReplaceKnowsCharactersInBrackets) {
  // As Python's re.escape writes string.punctuation, for SigLIP.
  const std::string punctuation =
      R"([!\"\\#\\$%\\&'\\(\\)\\*\\+,\\-\\./:;<=>\\?@\\[\\\\\\]\\^_`\\{\\|\\}\\~])";
  const auto replace = [&](const std::string& content) {
    return absl::StrCat(R"({"type":"Replace","pattern":{"Regex":")", punctuation,
                        R"("},"content":")", content, "\"}");
  };
  EXPECT_EQ(ShowNormalized(replace(""), "a-b, (c]\\!"), "a0:1 b2:3 _4:5 c6:7");
  EXPECT_EQ(ShowNormalized(replace("xy"), "a?é"), "a0:1 x1:2 y1:2 é2:3");
  EXPECT_EQ(ShowNormalized(replace(""), "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), "");
  for (const char* other : {"[a-z]", "[^a]", R"([\\s])", "[]", "[a[b]]", "[a&&b]", R"([a\\])"}) {
    EXPECT_THAT(ShowNormalized(absl::StrCat(R"({"type":"Replace","pattern":{"Regex":")", other,
                                            R"("},"content":""})"),
                               "a"),
                HasSubstr("not supported; use a String"))
        << other;
  }
}

TEST(NormalizerTest, ReplaceKnowsThePatternsOfSplit) {
  const auto replace = [](const std::string& regex, const std::string& text) {
    return ShowNormalized(
        R"({"type":"Replace","content":"x","pattern":{"Regex":")" + regex + "\"}}", text);
  };
  EXPECT_EQ(replace(R"(\\s)", "a  b\tc"), "a0:1 x1:2 x2:3 b3:4 x4:5 c5:6");
  EXPECT_EQ(replace(R"(\\p{N})", "a12²b"), "a0:1 x1:2 x2:3 x3:4 b4:5");
  EXPECT_EQ(replace(R"(\\p{L})", "a1éb"), "x0:1 11:2 x2:3 x3:4");
  EXPECT_EQ(replace(R"(\\p{N}{1,3})", "12345a6"), "x2:3 x4:5 a5:6 x6:7");
  EXPECT_EQ(replace("[一-龥぀-ゟ゠-ヿ]+", "a中文b か"), "a0:1 x2:3 b3:4 _4:5 x5:6");
  EXPECT_EQ(replace(R"('s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|)"
                    R"(\\s+(?!\\S)|\\s+)",
                    "it's  a"),
            "x1:2 x3:4 x4:5 x6:7");
  EXPECT_EQ(replace(R"(\\s+)", "ab"), "a0:1 b1:2");
}

TEST(NormalizerTest, PrependNeedsAText) {
  const std::string json = R"({"type":"Prepend","prepend":"▁"})";
  EXPECT_EQ(ShowNormalized(json, "ab"), "▁0:1 a0:1 b1:2");
  EXPECT_EQ(ShowNormalized(json, ""), "");
  EXPECT_EQ(ShowNormalized(R"({"type":"Prepend","prepend":""})", "a"),
            "normalizer.prepend: expected 1..64 bytes; got 0");
}

TEST(NormalizerTest, CharsmapReplacesCharactersAndShortClusters) {
  const std::string map = SmallCharsmap();
  EXPECT_EQ(ShowNormalized(map, "™\x1Eg"), "T0:1 M1:2 g2:3");
  EXPECT_EQ(ShowNormalized(map,
                           "\x1E"
                           "abc"),
            "a0:1 b1:2 c2:3");
  EXPECT_EQ(ShowNormalized(map, "a\r\nb"), "a0:1 _1:2 b3:4");
  EXPECT_EQ(ShowNormalized(map, "Ａ\u0301"), "A0:1");
  EXPECT_EQ(ShowNormalized(map, "Ａ\u0301\u0301"), "A0:1 \u03011:2 \u03012:3");
  // A character of four bytes may end a cluster, or belong to the next one.
  EXPECT_EQ(ShowNormalized(map, "\U000E0001\u0300\u0301"), "\U000E00010:1 ^1:2");
  EXPECT_EQ(ShowNormalized(map, "a\U000E0100\u0300\u0301"), "a0:1 \U000E01001:2 ^2:3 \u03013:4");
}

TEST(NormalizerTest, StripAndNmtAndStripAccents) {
  EXPECT_EQ(ShowNormalized(R"({"type":"Strip","strip_left":true,"strip_right":true})", " \ta "),
            "a2:3");
  EXPECT_EQ(ShowNormalized(Plain("Nmt"), "a\x01\u200Bb"), "a0:1 _2:3 b3:4");
  EXPECT_EQ(ShowNormalized(Plain("StripAccents"), "e\u0301é"), "e0:1 é2:3");
}

TEST(NormalizerTest, ByteLevelMapsBytes) {
  EXPECT_EQ(ShowNormalized(Plain("ByteLevel"), "a é"), "a0:1 Ġ1:2 Ã2:3 ©2:3");
}

TEST(NormalizerTest, AlternatingMarksTakeLinearTime) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += "\u0315\u0300";
  const auto tree = JsonTree::Parse(Plain("NFC"), "normalizer");
  const auto normalizer = LoadNormalizer((*tree)->root(), "normalizer");
  ASSERT_TRUE(normalizer.ok());
  Items items;
  ASSERT_TRUE(AppendItems(text, items));
  normalizer->apply(items);
  EXPECT_EQ(items.size(), 400'000u);  // à takes one of them
}

TEST(NormalizerTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(ShowNormalized(R"({"type":"Replace","pattern":{"Regex":"a+"},"content":""})", ""),
            "normalizer.pattern.Regex: \"a+\" not supported; use a String, the pattern of GPT-2, "
            "GPT-4o, Llama 3, Qwen, DeepSeek, Tekken or CLIP, \" {2,}\", \"\\\\s+\", "
            "\"\\\\s{2,}|[\\\\n\\\\r\\\\t]\" or single characters in brackets");
  EXPECT_EQ(ShowNormalized(R"({"type":"Replace","pattern":{"String":""},"content":""})", ""),
            "normalizer.pattern.String: expected 1..64 bytes; got 0");
  EXPECT_EQ(ShowNormalized(R"({"type":"NFC","form":1})", ""),
            "normalizer.form: this key is not supported; use type,");
  EXPECT_EQ(
      ShowNormalized(R"({"type":"Sequence","normalizers":[{"type":"Foo"}]})", "").substr(0, 52),
      "normalizer.normalizers[0].type: \"Foo\" not supported;");
  EXPECT_EQ(ShowNormalized(R"({"type":"Prepend","prepend":")" + std::string(65, 'a') + "\"}", ""),
            "normalizer.prepend: expected at most 64 bytes; got 65");
  EXPECT_EQ(ShowNormalized(R"({"type":"Precompiled","precompiled_charsmap":"AAAA"})", ""),
            "normalizer.precompiled_charsmap: expected a character map in base64; got less than "
            "its size");
}

}  // namespace
}  // namespace attendant::text
