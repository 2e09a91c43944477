#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/tokenizer_class_forms.h"
#include "tests/server/text/test_files.h"

namespace attendant::text {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A cased BERT, whose words are "A", "a" and "é".
std::string CasedBert() {
  const auto added = [](int id, const char* content) {
    return absl::StrCat(
        R"({"id":)", id, R"(,"content":")", content,
        R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)",
        R"("special":true})");
  };
  return absl::StrCat(
      R"({"version":"1.0","truncation":{"direction":"Left","max_length":3,"strategy":"LongestFirst",)",
      R"("stride":0},"added_tokens":[)", added(0, "[UNK]"), ",", added(1, "[CLS]"), ",",
      added(2, "[SEP]"),
      R"(],"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)",
      R"("strip_accents":false,"lowercase":false},"pre_tokenizer":{"type":"BertPreTokenizer"},)",
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]",)",
      R"("type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]",)",
      R"("type_id":0}}],"pair":[],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[1],)",
      R"("tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[2],"tokens":["[SEP]"]}}},)",
      R"("model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)",
      R"("max_input_chars_per_word":100,"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"A":3,"a":4,"é":5}}})");
}

EffectiveTokenizer Load(const TestFiles& files) {
  auto effective = LoadFiles(files);
  EXPECT_TRUE(effective.ok()) << effective.status();
  return *std::move(effective);
}

TEST(TokenizerFilesTest, AFileOfNoKnownClassIsUsedAsItIs) {
  const EffectiveTokenizer effective = Load({.tokenizer_json = CasedBert()});
  EXPECT_THAT(effective.tokenizer->Encode("A é", {})->ids, ElementsAre(1, 3, 5, 2));
  EXPECT_THAT(effective.notes, IsEmpty());
}

TEST(TokenizerFilesTest, BertsClassLowercasesUnlessToldNotTo) {
  TestFiles files = {.tokenizer_json = CasedBert(),
                     .tokenizer_config_json = R"({"tokenizer_class":"BertTokenizerFast"})"};
  const EffectiveTokenizer lower = Load(files);
  EXPECT_THAT(lower.tokenizer->Encode("A é", {})->ids, ElementsAre(1, 4, 0, 2));
  EXPECT_THAT(lower.notes,
              Contains("transformers' BertTokenizer replaces the normalizer of tokenizer.json"));
  files.tokenizer_config_json =
      R"({"tokenizer_class":"BertTokenizer","do_lower_case":false,"strip_accents":true})";
  EXPECT_THAT(Load(files).tokenizer->Encode("A á", {})->ids, ElementsAre(1, 3, 4, 2));
}

// As DPR's class of transformers 5.23, which does not pass do_lower_case on.
TEST(TokenizerFilesTest, DprsClassesAlwaysLowercase) {
  for (const char* name : {"DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer"}) {
    const std::string config =
        absl::StrCat(R"({"tokenizer_class":")", name, R"(","do_lower_case":false})");
    EXPECT_THAT(Load({.tokenizer_json = CasedBert(), .tokenizer_config_json = config})
                    .tokenizer->Encode("A", {})
                    ->ids,
                ElementsAre(1, 4, 2));
  }
}

TEST(TokenizerFilesTest, TheModelsTypeNamesTheClassIfNothingElseDoes) {
  const EffectiveTokenizer effective =
      Load({.tokenizer_json = CasedBert(), .config_json = R"({"model_type":"bert"})"});
  EXPECT_THAT(effective.tokenizer->Encode("A", {})->ids, ElementsAre(1, 4, 2));
}

TEST(TokenizerFilesTest, SpecialTokensOfTheClassAreFoundInTheVocabulary) {
  const EffectiveTokenizer effective =
      Load({.tokenizer_json = CasedBert(),
            .tokenizer_config_json =
                R"({"tokenizer_class":"BertTokenizer","cls_token":{"content":"A"}})"});
  EXPECT_THAT(effective.tokenizer->Encode("a", {})->ids, ElementsAre(3, 4, 2));
}

// As transformers 5.23 with these files; [PAD], <s> and [MASK] come after the vocabulary.
TEST(TokenizerFilesTest, SpecialTokensOutsideTheVocabularyAreAdded) {
  const EffectiveTokenizer effective =
      Load({.tokenizer_json = CasedBert(),
            .tokenizer_config_json = R"({"tokenizer_class":"BertTokenizer","cls_token":"<s>"})"});
  EXPECT_THAT(effective.tokenizer->Encode("a [MASK]", {})->ids, ElementsAre(7, 4, 8, 2));
  EXPECT_THAT(effective.notes,
              Contains("transformers' BertTokenizer adds the special tokens [PAD], <s>, [MASK]"));
}

TEST(TokenizerFilesTest, TokensOfTheDecoderAreAddedInTheOrderOfTheirIds) {
  const EffectiveTokenizer effective =
      Load({.tokenizer_json = CasedBert(),
            .tokenizer_config_json =
                R"({"added_tokens_decoder":{"90":{"content":"<n>","special":true},)"
                R"("9":{"content":"<m>","special":true}},"additional_special_tokens":["<o>"]})"});
  EXPECT_THAT(effective.tokenizer->Encode("<n><m><o>", {})->ids, ElementsAre(1, 7, 6, 8, 2));
  EXPECT_THAT(effective.notes,
              ElementsAre("added_tokens_decoder adds <m>, <n>",
                          "transformers' TokenizersBackend adds the special tokens <o>"));
}

// The ids of these three tests are those of transformers 5.23 with the same files.
TEST(TokenizerFilesTest, TokensOfKeysOfCertainModelsAreAdded) {
  const auto ids = [](const char* config) {
    return Load({.tokenizer_json = CasedBert(), .tokenizer_config_json = config})
        .tokenizer->Encode("<a><b><c>", {})
        ->ids;
  };
  EXPECT_THAT(ids(R"({"image_token":"<b>","extra_special_tokens":{"x":"<c>"},)"
                  R"("additional_special_tokens":["<a>"]})"),
              ElementsAre(1, 8, 6, 7, 2));
  EXPECT_THAT(ids(R"({"model_specific_special_tokens":{"x":"<c>","y":"<b>"}})"),
              ElementsAre(1, 0, 4, 0, 7, 6, 2));
}

TEST(TokenizerFilesTest, TheMapOfSpecialTokensCountsWithoutTheDecoder) {
  const auto ids = [](const char* config, const char* map) {
    return Load({.tokenizer_json = CasedBert(),
                 .tokenizer_config_json = config,
                 .special_tokens_map_json = map})
        .tokenizer->Encode("<a><d><e>", {})
        ->ids;
  };
  constexpr char kMap[] = R"({"additional_special_tokens":["<d>","<c>"],"video_token":"<e>"})";
  EXPECT_THAT(ids("{}", kMap), ElementsAre(1, 0, 4, 0, 7, 6, 2));
  EXPECT_THAT(ids(R"({"added_tokens_decoder":{}})", kMap),
              ElementsAre(1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2));
  EXPECT_THAT(
      ids(R"({"additional_special_tokens":["<a>"]})", R"({"additional_special_tokens":["<d>"]})"),
      ElementsAre(1, 6, 0, 0, 0, 0, 0, 0, 2));
  EXPECT_THAT(
      ids(R"({"additional_special_tokens":["<a>"]})", R"({"extra_special_tokens":["<d>"]})"),
      ElementsAre(1, 6, 7, 0, 0, 0, 2));
}

// Also as transformers 5.23.
TEST(TokenizerFilesTest, NamedTokensOfTheMapComeBeforeThoseOfTheConfig) {
  const auto ids = [](const char* config, const char* map) {
    return Load({.tokenizer_json = CasedBert(),
                 .tokenizer_config_json = config,
                 .special_tokens_map_json = map})
        .tokenizer->Encode("<a><b><d><e>", {.add_special_tokens = false})
        ->ids;
  };
  const char* image = R"({"image_token":"<a>"})";
  EXPECT_THAT(ids(image, R"({"video_token":"<d>"})"), ElementsAre(7, 0, 0, 0, 6, 0, 0, 0));
  EXPECT_THAT(ids(image, R"({"image_token":"<d>"})"), ElementsAre(6, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(ids(R"({"image_token":"<a>","extra_special_tokens":{"x":"<b>"}})",
                  R"({"video_token":"<d>","extra_special_tokens":{"y":"<e>"}})"),
              ElementsAre(7, 8, 6, 9));
}

TEST(TokenizerFilesTest, AddedTokensOfOlderFilesFollowTheVocabulary) {
  TestFiles files = {.tokenizer_json = CasedBert(),
                     .tokenizer_config_json = R"({"pad_token":"<b>"})",
                     .added_tokens_json = R"({"<b>":9,"<é>":7,"A":3})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("<b> É<é> A", {})->ids, ElementsAre(1, 7, 0, 6, 3, 2));
  files.tokenizer_config_json = R"({"tokenizer_class":"BertTokenizer","pad_token":"<b>"})";
  files.added_tokens_json = R"({"<b>":9,"<É>":7,"A":3})";
  EXPECT_THAT(Load(files).tokenizer->Encode("<b> É<É> A<É>", {})->ids,
              ElementsAre(1, 7, 0, 6, 3, 6, 2));
  files.tokenizer_config_json = R"({"added_tokens_decoder":{}})";
  EXPECT_THAT(Load(files).tokenizer->Encode("<b>", {})->ids, ElementsAre(1, 0, 0, 0, 2));
  files = {.vocab_txt = "[UNK]\n[CLS]\n[SEP]\na\n",
           .tokenizer_config_json = R"({"pad_token":"<b>"})",
           .added_tokens_json = R"({"<b>":9,"<é>":7})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("<b> a<é>", {})->ids, ElementsAre(1, 5, 3, 4, 2));
}

// A Unigram tokenizer that marks words as ALBERT's older files do. `special` are its special
// tokens.
std::string Pieces(const std::vector<std::string>& special, const std::string& ends) {
  std::string added, pieces;
  for (const std::string& token : special) {
    absl::StrAppend(&pieces, "[\"", token, "\",0.0],");
    absl::StrAppend(&added, added.empty() ? "" : ",", R"({"id":)", &token - special.data(),
                    R"(,"content":")", token,
                    R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)",
                    R"("special":true})");
  }
  absl::StrAppend(&pieces, R"(["▁",-2.0])");
  for (const char* letter : {"a", "b", "c", "d", "e", "A", "B", "É", "é", R"(\")", "`"}) {
    absl::StrAppend(&pieces, ",[\"", letter, "\",-4.0]");
  }
  return absl::StrCat(
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)", added,
      R"(],"normalizer":null,"pre_tokenizer":{"type":"Metaspace","replacement":"▁",)",
      R"("prepend_scheme":"always","split":true},"post_processor":)", ends,
      R"(,"decoder":null,"model":{"type":"Unigram","unk_id":1,"byte_fallback":false,"vocab":[)",
      pieces, R"(,["▁a",-3.0]]}})");
}

// The ids are those of transformers 5.23 with the same files.
TEST(TokenizerFilesTest, ClassesOfUnigramModelsBuildTheirOwnParts) {
  const auto ids = [](const std::string& file, const char* config, const char* text) {
    return Load({.tokenizer_json = file, .tokenizer_config_json = config})
        .tokenizer->Encode(text, {})
        ->ids;
  };
  const std::string albert = Pieces(
      {"<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"},
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],)"
      R"("pair":[],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},)"
      R"("[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}})");
  constexpr char kAlbert[] = R"({"tokenizer_class":"AlbertTokenizer"})";
  EXPECT_THAT(ids(albert, kAlbert, "Éa B"), ElementsAre(2, 5, 10, 6, 5, 7, 3));
  EXPECT_THAT(ids(albert, kAlbert, "``a'' b"), ElementsAre(2, 5, 15, 6, 15, 5, 7, 3));
  EXPECT_THAT(ids(albert, kAlbert, "a  b"), ElementsAre(2, 17, 5, 7, 3));
  EXPECT_THAT(ids(albert, kAlbert, "<unk>b"), ElementsAre(2, 1, 5, 7, 3));
  const std::string big_bird =
      Pieces({"<pad>", "</s>", "<s>", "<unk>", "[SEP]", "[MASK]", "[CLS]"}, "null");
  constexpr char kBigBird[] = R"({"tokenizer_class":"BigBirdTokenizer"})";
  EXPECT_THAT(ids(big_bird, kBigBird, "Éa B"), ElementsAre(6, 7, 15, 8, 7, 14, 4));
  EXPECT_THAT(ids(big_bird, kBigBird, "``a'' b"), ElementsAre(6, 7, 18, 18, 8, 3, 7, 9, 4));
  EXPECT_THAT(ids(big_bird, kBigBird, "a  b"), ElementsAre(6, 19, 7, 9, 4));
  const std::string camembert = Pieces({"<s>", "<pad>", "</s>", "<unk>", "<mask>"}, "null");
  constexpr char kCamembert[] = R"({"tokenizer_class":"CamembertTokenizer"})";
  EXPECT_THAT(ids(camembert, kCamembert, "Éa B"), ElementsAre(0, 5, 13, 6, 5, 12, 2));
  EXPECT_THAT(ids(camembert, kCamembert, "``a'' b"), ElementsAre(0, 5, 16, 16, 6, 3, 5, 7, 2));
  EXPECT_THAT(ids(camembert, kCamembert, "a<s>NOTUSED"), ElementsAre(0, 17, 18, 2));
  EXPECT_THAT(
      ids(camembert, R"({"tokenizer_class":"CamembertTokenizer","additional_special_tokens":[]})",
          "a<s>NOTUSED"),
      ElementsAre(0, 17, 0, 5, 3, 2));
}

// A BPE tokenizer of "a", "b" and "ab", with options that transformers' classes do not have.
std::string Bpe(const std::string& pre_tokenizer) {
  return absl::StrCat(
      R"({"version":"1.0","pre_tokenizer":)", pre_tokenizer,
      R"(,"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"<|endoftext|>":3,"Ġ":4,"▁":5},)",
      R"("merges":[],"ignore_merges":true}})");
}

TEST(TokenizerFilesTest, ClassesResetOptionsOfTheModel) {
  const auto ids = [](const std::string& config) {
    return Load({.tokenizer_json = Bpe("null"), .tokenizer_config_json = config})
        .tokenizer->Encode("ab", {})
        ->ids;
  };
  EXPECT_THAT(ids("{}"), ElementsAre(2));
  EXPECT_THAT(ids(R"({"tokenizer_class":"Qwen2Tokenizer"})"), ElementsAre(0, 1));
  EXPECT_THAT(ids(R"({"tokenizer_class":"LlamaTokenizerFast"})"), ElementsAre(5, 0, 1));
  // These are of the file, whatever the class.
  EXPECT_THAT(ids(R"({"add_eos_token":true,"eos_token":"Ġ"})"), ElementsAre(2));
}

// As transformers 5.23 with these files, which are like those of Qwen3-Embedding: its
// post-processor ends a text with the token of which the last hidden state is taken, also a text
// that is cut.
TEST(TokenizerFilesTest, QwensPostProcessorEndsTextsWhateverTheConfigSays) {
  const std::string end = R"({"SpecialToken":{"id":"<|endoftext|>","type_id":0}})";
  const std::string first = R"({"Sequence":{"id":"A","type_id":0}})";
  const std::string bytes = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,)";
  const std::string json = absl::StrCat(
      R"({"version":"1.0","added_tokens":[{"id":5,"content":"<|endoftext|>","single_word":false,)",
      R"("lstrip":false,"rstrip":false,"normalized":false,"special":true}],)",
      R"("normalizer":{"type":"NFC"},"pre_tokenizer":)", bytes, R"("use_regex":true},)",
      R"("post_processor":{"type":"Sequence","processors":[)", bytes, R"("use_regex":false},)",
      R"({"type":"TemplateProcessing","single":[)", first, ",", end, R"(],"pair":[)", first,
      R"(,{"Sequence":{"id":"B","type_id":1}},)", end,
      R"(],"special_tokens":{"<|endoftext|>":{"id":"<|endoftext|>","ids":[5],)",
      R"("tokens":["<|endoftext|>"]}}}]},)",
      R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"Ġ":3,"Ġab":4},)",
      R"("merges":["a b","Ġ ab"]}})");
  for (const char* flag : {"", R"(,"add_eos_token":true)", R"(,"add_eos_token":false)"}) {
    const EffectiveTokenizer effective =
        Load({.tokenizer_json = json,
              .tokenizer_config_json = absl::StrCat(
                  R"({"tokenizer_class":"Qwen2Tokenizer","eos_token":"<|endoftext|>",)",
                  R"("pad_token":"<|endoftext|>")", flag, "}"),
              .config_json = R"({"model_type":"qwen3"})"});
    EXPECT_THAT(effective.tokenizer->Encode("ab ab", {})->ids, ElementsAre(2, 4, 5));
    EXPECT_THAT(effective.tokenizer->EncodePair("ab", "ab", {})->ids, ElementsAre(2, 2, 5));
    EncodeOptions cut;
    cut.max_length = 2;
    EXPECT_THAT(effective.tokenizer->Encode("ab ab ab", cut)->ids, ElementsAre(2, 5));
  }
}

// As transformers 5.23, whose class adds its special tokens again, without flags.
TEST(TokenizerFilesTest, QwensSpecialTokensHaveNoFlags) {
  const EffectiveTokenizer effective =
      Load({.tokenizer_json =
                Bpe(R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})"),
            .tokenizer_config_json =
                R"({"tokenizer_class":"Qwen2Tokenizer","bos_token":{"__type":"AddedToken",)"
                R"("content":"<m>","single_word":true,"lstrip":true,"rstrip":true}})"});
  EXPECT_THAT(effective.tokenizer->Encode("a <m>a", {})->ids, ElementsAre(0, 4, 6, 0));
}

// As transformers 5.23, of which only TokenizersBackend reads the padding.
TEST(TokenizerFilesTest, TheTokenOfPaddingIsSpecialUnlessTheConfigNamesOne) {
  const auto ids = [](const char* config) {
    std::string json = CasedBert();
    json.insert(1, R"("padding":{"strategy":"BatchLongest","pad_id":0,"pad_token":"A"},)");
    return Load({.tokenizer_json = json, .tokenizer_config_json = config})
        .tokenizer->Encode("Aa", {})
        ->ids;
  };
  EXPECT_THAT(ids("{}"), ElementsAre(1, 3, 4, 2));
  EXPECT_THAT(ids(R"({"pad_token":null})"), ElementsAre(1, 0, 2));
  EXPECT_THAT(ids(R"({"pad_token":"[PAD]"})"), ElementsAre(1, 0, 2));
  EXPECT_THAT(ids(R"({"tokenizer_class":"BertTokenizer"})"), ElementsAre(1, 0, 2));
}

// As transformers 5.23, whose class ends texts with the token that the settings name.
TEST(TokenizerFilesTest, T5EndsWithItsEosToken) {
  const TestFiles files = {
      .tokenizer_json =
          R"({"version":"1.0","model":{"type":"Unigram","unk_id":2,"vocab":[["<pad>",0],)"
          R"(["</s>",0],["<unk>",0],["▁a",-1],["<e>",-2]]}})",
      .tokenizer_config_json =
          R"({"tokenizer_class":"T5Tokenizer","eos_token":"<e>","extra_ids":0})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("a", {})->ids, ElementsAre(3, 4));
}

TEST(TokenizerFilesTest, ALlamaOfBytesIsUsedAsItIs) {
  const std::string json =
      Bpe(R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})");
  const EffectiveTokenizer effective =
      Load({.tokenizer_json = json,
            .tokenizer_config_json = R"({"tokenizer_class":"LlamaTokenizerFast"})"});
  EXPECT_THAT(effective.tokenizer->Encode("ab", {})->ids, ElementsAre(2));
}

TEST(TokenizerFilesTest, SomeModelTypesOverruleTheClass) {
  const auto ids = [](const std::string& type) {
    return Load({.tokenizer_json = CasedBert(),
                 .tokenizer_config_json = R"({"tokenizer_class":"BertTokenizer"})",
                 .config_json = absl::StrCat(R"({"model_type":")", type, "\"}")})
        .tokenizer->Encode("A", {})
        ->ids;
  };
  EXPECT_THAT(ids("modernbert"), ElementsAre(1, 3, 2));
  EXPECT_THAT(ids("nomic_bert"), ElementsAre(1, 4, 2));
}

TEST(TokenizerFilesTest, SentenceTransformersLowercasesFirst) {
  const EffectiveTokenizer effective = Load(
      {.tokenizer_json = CasedBert(), .sentence_bert_config_json = R"({"do_lower_case":true})"});
  EXPECT_THAT(effective.tokenizer->Encode("A", {})->ids, ElementsAre(1, 4, 2));
}

TEST(TokenizerFilesTest, FlagsOfAddedTokensWin) {
  const EffectiveTokenizer effective = Load(
      {.tokenizer_json = CasedBert(),
       .tokenizer_config_json =
           R"({"added_tokens_decoder":{"2":{"content":"[SEP]","lstrip":true,"normalized":false}}})"});
  EXPECT_EQ(effective.tokenizer->Encode("A  [SEP]", {})->code_points[2].begin, 1u);
  EXPECT_THAT(effective.notes, ElementsAre("added_tokens_decoder changes the flags of [SEP]"));
}

constexpr char kLines[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##able\n";

TEST(TokenizerFilesTest, LinesAreAVocabularyOfBert) {
  const EffectiveTokenizer effective = Load({.vocab_txt = kLines});
  EXPECT_THAT(effective.tokenizer->Encode("Únable [MASK] ?", {})->ids,
              ElementsAre(2, 5, 6, 4, 1, 3));
  EXPECT_EQ(effective.tokenizer->id_limit(), 7u);
  EXPECT_EQ(effective.tokenizer->TokenId("##able"), 6u);
  EXPECT_THAT(effective.notes, ElementsAre("no tokenizer.json: transformers' "
                                           "BertTokenizer is built from vocab.txt"));
}

TEST(TokenizerFilesTest, LinesFollowTheSettingsOfTheirClass) {
  EXPECT_THAT(Load({.vocab_txt = "[UNK]\r\n[CLS]\r\n[SEP]\r\nA\r\na\r\n",
                    .tokenizer_config_json = R"({"do_lower_case":false})"})
                  .tokenizer->Encode("A a", {})
                  ->ids,
              ElementsAre(1, 3, 4, 2));
  EXPECT_THAT(Load({.vocab_txt = kLines,
                    .tokenizer_config_json =
                        R"({"added_tokens_decoder":{"7":{"content":"<m>","special":true}}})"})
                  .tokenizer->Encode("un<m>", {})
                  ->ids,
              ElementsAre(2, 5, 7, 3));
  EXPECT_THAT(
      Load({.vocab_txt = "<s>\n</s>\n[UNK]\na\n", .config_json = R"({"model_type":"mpnet"})"})
          .tokenizer->Encode("a", {})
          ->ids,
      ElementsAre(0, 3, 1));
}

TEST(TokenizerFilesTest, ATokenOnSeveralLinesHasTheIdOfTheLast) {
  EXPECT_THAT(
      Load({.vocab_txt = "[UNK]\n[CLS]\n[SEP]\na\n\n\"\\\na\n\n"}).tokenizer->Encode("a", {})->ids,
      ElementsAre(1, 6, 2));
}

// As WordPiece reads them, which counts an empty line, and drops spaces at the end of others.
TEST(TokenizerFilesTest, LinesMayBeEmptyOrEndWithSpaces) {
  const TestFiles files = {.vocab_txt = "[UNK]\n[CLS] \n[SEP]\n[PAD]\n[MASK]\na\u3000\t\r\n\n",
                           .tokenizer_config_json = R"({"additional_special_tokens":["<m>"]})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("a<m>", {})->ids, ElementsAre(1, 5, 7, 2));
}

TEST(TokenizerFilesTest, PairsAreAVocabularyOfTheirClass) {
  const EffectiveTokenizer effective =
      Load({.vocab_json = R"({"<s>":0,"<pad>":1,"</s>":2,"<unk>":3,"<mask>":4,"a":5,"b":6,"ab":7,)"
                          R"("Ġ":8,"Ġab":9,"#":10,"##":11})",
            .merges_txt = "#version: 0.2\na b\r\nĠ ab\n# #\n",
            .vocab_txt = "a",
            .config_json = R"({"model_type":"roberta"})"});
  EXPECT_THAT(effective.tokenizer->Encode("ab ab##", {})->ids, ElementsAre(0, 7, 9, 11, 2));
  EXPECT_THAT(effective.notes,
              ElementsAre("no tokenizer.json: transformers' RobertaTokenizer is built from "
                          "vocab.json and merges.txt"));
}

// The ids are those of transformers 5.23 with the same files.
TEST(TokenizerFilesTest, PairsOfGpt2HaveNoEnds) {
  TestFiles files = {.vocab_json = R"({"a":0,"b":1,"ab":2,"Ġ":3,"Ġab":4,"1":5,"<s>":6})",
                     .merges_txt = "#version: 0.2\na b\nĠ ab\n",
                     .tokenizer_config_json = R"({"tokenizer_class":"GPT2TokenizerFast"})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("ab ab11<|endoftext|>a", {})->ids,
              ElementsAre(2, 4, 5, 5, 7, 0));
  files.tokenizer_config_json =
      R"({"tokenizer_class":"GPT2Tokenizer","add_prefix_space":true,"bos_token":"<s>",)"
      R"("eos_token":"<s>","unk_token":"<s>"})";
  EXPECT_THAT(Load(files).tokenizer->Encode("ab a<s>", {})->ids, ElementsAre(4, 3, 0, 6));
}

TEST(TokenizerFilesTest, RefusesVocabulariesThatAreNone) {
  const auto error = [](const TestFiles& files) {
    return std::string(LoadFiles(files).status().message());
  };
  EXPECT_EQ(error({.vocab_txt = "[UNK]\n\xff"}),
            "vocab.txt: expected UTF-8; got something else at byte 6");
  TestFiles pairs = {.vocab_json = "[]", .merges_txt = ""};
  EXPECT_EQ(error(pairs),
            "vocab.json and merges.txt: a vocabulary of this tokenizer_class is not supported; use "
            "tokenizer.json, which AutoTokenizer's save_pretrained writes");
  pairs.config_json = R"({"model_type":"roberta"})";
  EXPECT_EQ(error(pairs), "vocab.json: expected an object; got an array");
  pairs.vocab_json = R"({"a":0})";
  pairs.merges_txt = "#version: 0.2\na b c\n";
  EXPECT_EQ(error(pairs), "merges.txt: expected two tokens on a line; got 3 on line 2");
  pairs.merges_txt = "\xff";
  EXPECT_EQ(error(pairs), "merges.txt: expected UTF-8; got something else at byte 0");
}

TEST(TokenizerFilesTest, RefusesClassesWithCodeOfTheirOwn) {
  const auto refusal = [](TestFiles files) {
    files.vocab_txt = "[UNK]\n[CLS]\n[SEP]\n";
    return LoadFiles(files).status();
  };
  const absl::Status named =
      refusal({.tokenizer_json = CasedBert(),
               .tokenizer_config_json = R"({"tokenizer_class":"RoFormerTokenizerFast"})"});
  EXPECT_EQ(named.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(named.message(),
            "tokenizer_class: RoFormerTokenizer not supported: it splits texts with custom code; "
            "send token ids");
  const absl::Status of_type = refusal({.config_json = R"({"model_type":"esm"})"});
  EXPECT_THAT(std::string(of_type.message()),
              ::testing::StartsWith("tokenizer_class: EsmTokenizer"));
  // PhoBERT's vocabulary is in vocab.txt too, but it is not BERT's.
  const absl::Status of_words =
      refusal({.config_json = R"({"model_type":"roberta","tokenizer_class":"PhobertTokenizer"})"});
  EXPECT_THAT(std::string(of_words.message()),
              ::testing::StartsWith("tokenizer_class: PhobertTokenizer not supported"));
  // A checkpoint that names BERT's class has no such code.
  EXPECT_TRUE(refusal({.tokenizer_json = CasedBert(),
                       .tokenizer_config_json = R"({"tokenizer_class":"BertTokenizer"})",
                       .config_json = R"({"model_type":"roformer"})"})
                  .ok());
}

// As transformers 5.23, which ignores the normalizer, and of which other classes replace parts.
TEST(TokenizerFilesTest, ClassesApplyToModelsWithoutAType) {
  std::string json = CasedBert();
  json.erase(json.find(R"("type":"WordPiece",)"), strlen(R"("type":"WordPiece",)"));
  const TestFiles files = {.tokenizer_json = json,
                           .tokenizer_config_json = R"({"tokenizer_class":"BertTokenizer"})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("A", {})->ids, ElementsAre(1, 4, 2));
}

TEST(TokenizerFilesTest, RefusesClassesThatReplaceUnknownParts) {
  for (const std::string name : {"SplinterTokenizer", "GPTNeoXTokenizerFast"}) {
    EXPECT_EQ(LoadFiles({.tokenizer_json = CasedBert(),
                         .tokenizer_config_json = R"({"tokenizer_class":")" + name + "\"}"})
                  .status(),
              absl::UnimplementedError("tokenizer_class: " + name +
                                       " not supported: it replaces parts of tokenizer.json; use "
                                       "PreTrainedTokenizerFast, which keeps them"));
  }
  // These models' class is another one, whatever the files say.
  EXPECT_TRUE(LoadFiles({.tokenizer_json = CasedBert(),
                         .tokenizer_config_json = R"({"tokenizer_class":"GPTNeoXTokenizer"})",
                         .config_json = R"({"model_type":"modernbert"})"})
                  .ok());
}

// As transformers 5.23, with ids that HerBERT's class sets.
TEST(TokenizerFilesTest, PairsOfHerbertEndWords) {
  const TestFiles files = {
      .vocab_json =
          R"({"<s>":0,"<pad>":1,"</s>":2,"<unk>":3,"<mask>":4,"a":5,"b</w>":6,"ab</w>":7})",
      .merges_txt = "#version: 0.2\na b</w>\n",
      .config_json = R"({"model_type":"bert","tokenizer_class":"HerbertTokenizerFast"})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("ab Xb<mask>", {})->ids, ElementsAre(0, 7, 3, 6, 4, 2));
}

// As transformers 5.23: BARThez' class splits at spaces only, and takes no SentencePiece model.
TEST(TokenizerFilesTest, BarthezHasItsOwnNormalizer) {
  const auto added = [](const char* token) { return absl::StrCat("[\"", token, "\",0],"); };
  TestFiles files = {.tokenizer_json = absl::StrCat(
                         R"({"version":"1.0","model":{"type":"Unigram","unk_id":0,"vocab":[)",
                         added("<s>"), added("<pad>"), added("</s>"), added("<unk>"),
                         added("<mask>"), R"(["▁",-3],["é",-2],["▁a",-1]]}})"),
                     .tokenizer_config_json = R"({"tokenizer_class":"BarthezTokenizer"})"};
  EXPECT_THAT(Load(files).tokenizer->Encode("a\n e\u0301  ", {})->ids, ElementsAre(7, 5, 6));
}

// As model_input_names of transformers 5.23, whose default depends on the class.
TEST(TokenizerFilesTest, ModelsGetTypesOfTokensIfTheSettingsOrTheClassSaySo) {
  const auto has_types = [](const char* config) {
    return Load({.tokenizer_json = CasedBert(), .tokenizer_config_json = config}).has_types;
  };
  EXPECT_TRUE(has_types(R"({"tokenizer_class":"BertTokenizer"})"));
  EXPECT_TRUE(has_types(R"({"tokenizer_class":"ConvBertTokenizer"})"));
  EXPECT_FALSE(has_types(R"({"tokenizer_class":"DistilBertTokenizer"})"));
  EXPECT_FALSE(has_types(R"({"tokenizer_class":"PreTrainedTokenizerFast"})"));
  EXPECT_FALSE(has_types(R"({"tokenizer_class":"BertTokenizer",)"
                         R"("model_input_names":["input_ids","attention_mask"]})"));
  EXPECT_TRUE(has_types(R"({"model_input_names":["input_ids","token_type_ids"]})"));
  EXPECT_TRUE(Load({.vocab_txt = kLines}).has_types);
}

// As unk_token_id of transformers 5.23, which does not read the model of tokenizer.json.
TEST(TokenizerFilesTest, TheUnknownTokenIsThatOfTheSettingsOrTheClass) {
  const auto unknown = [](const char* config) {
    return Load({.tokenizer_json = CasedBert(), .tokenizer_config_json = config}).unknown_id;
  };
  EXPECT_EQ(unknown(R"({"tokenizer_class":"BertTokenizer"})"), 0u);
  EXPECT_EQ(unknown(R"({"tokenizer_class":"BertTokenizer","unk_token":"A"})"), 3u);
  EXPECT_EQ(unknown(R"({"tokenizer_class":"PreTrainedTokenizerFast","unk_token":"[UNK]"})"), 0u);
  EXPECT_EQ(unknown(R"({"tokenizer_class":"PreTrainedTokenizerFast"})"), std::nullopt);
}

TEST(TokenizerFilesTest, RefusesLinesOfAnUnknownClass) {
  const absl::Status refusal =
      LoadFiles({.vocab_txt = kLines,
                 .tokenizer_config_json = R"({"tokenizer_class":"FunnelTokenizer"})"})
          .status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      refusal.message(),
      "vocab.txt: a vocabulary of FunnelTokenizer is not supported; use tokenizer.json, which "
      "AutoTokenizer's save_pretrained writes");
}

// A name that is misspelled in tokenizer_classes.json.
TEST(TokenizerFilesTest, RefusesFormsWithUnknownNames) {
  const auto form = JsonTree::Parse(
      R"({"special_tokens":{"eos_token":"</s>"},"normalizer":"$charmap",)"
      R"("post_processor":{"template":["A $eos_tokn","A B"]},"tokens":{"last":["$sentinel"]},)"
      R"("pre_tokenizer":{"choose":["is_split",null,null]}})",
      "form");
  const TokenizerClass known = {"OddTokenizer", (*form)->root(), std::nullopt};
  const auto settings = TokenizerSettings::Read({});
  const auto file = Fields::Parse("{}", "tokenizer.json");
  const auto error = [&](const char* key) {
    const auto find = [](absl::string_view) { return 1u; };
    return std::string(ClassPart(known, *settings, *file, key, find).status().message());
  };
  const std::string start = "tokenizer_classes.json: OddTokenizer: no value is known for ";
  EXPECT_EQ(error("normalizer"), start + "\"$charmap\"");
  EXPECT_EQ(error("pre_tokenizer"), start + "\"$is_split\"");
  EXPECT_EQ(error("post_processor"), start + "\"$eos_tokn\"");
  EXPECT_EQ(ClassTokens(known, *settings).status().message(), start + "\"$sentinel\"");
}

TEST(TokenizerFilesTest, RefusesToSplitSpecialTokens) {
  const absl::Status refusal =
      LoadFiles({.tokenizer_json = CasedBert(),
                 .tokenizer_config_json = R"({"split_special_tokens":true})"})
          .status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refusal.message(),
            "tokenizer_config.json.split_special_tokens: true not supported; use false");
}

TEST(TokenizerFilesTest, RefusesMissingAndWrongFiles) {
  EXPECT_EQ(
      LoadFiles({.vocab_txt = kLines, .added_tokens_json = R"({"a":"b"})"}).status().message(),
      "added_tokens.json: expected ids of tokens; got \"b\"");
  EXPECT_EQ(LoadFiles({}).status().message(),
            "tokenizer.json: not found; add it, vocab.txt, vocab.json with merges.txt, or the "
            "SentencePiece model");
  EXPECT_EQ(LoadFiles({.tokenizer_json = CasedBert(), .config_json = "[]"}).status().message(),
            "config.json: expected an object; got an array");
  EXPECT_EQ(LoadFiles({.tokenizer_json = CasedBert(),
                       .tokenizer_config_json =
                           R"({"tokenizer_class":"BertTokenizer","do_lower_case":"yes"})"})
                .status()
                .message(),
            "tokenizer_config.json.do_lower_case: expected true or false; got \"yes\"");
}

}  // namespace
}  // namespace attendant::text
