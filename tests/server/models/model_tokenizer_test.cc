#include "server/models/model_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::server {
namespace model_tokenizer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kVocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\nHello\n";
constexpr char kTokenizer[] =
    R"({"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
        "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"hello":4,"Hello":5}}})";

ModelDescription WithEmbeddings() {
  ModelDescription model;
  model.embeddings.emplace();
  return model;
}

struct Loaded {
  std::shared_ptr<const ModelTokenizer> tokenizer;
  std::vector<std::string> notes;
};

Loaded Load(const std::map<std::string, std::string>& files,
            const ModelDescription& model = WithEmbeddings()) {
  Loaded loaded;
  loaded.tokenizer = LoadModelTokenizer(model, files, RealClock(), loaded.notes);
  return loaded;
}

std::vector<uint32_t> Ids(const Loaded& loaded, const char* text) {
  const auto encoding = loaded.tokenizer->tokenizer->Encode(text, {});
  return encoding.ok() ? encoding->ids : std::vector<uint32_t>();
}

TEST(ModelTokenizerTest, IsThatOfTheFiles) {
  const Loaded loaded = Load({{"tokenizer.json", kTokenizer}});
  ASSERT_NE(loaded.tokenizer->tokenizer, nullptr) << loaded.tokenizer->why_none;
  EXPECT_THAT(Ids(loaded, "Hello"), ElementsAre(5));
  EXPECT_GT(loaded.tokenizer->bytes_per_second, 0);
  EXPECT_THAT(loaded.notes, IsEmpty());
}

TEST(ModelTokenizerTest, FollowsTheSettingsBesideThem) {
  const Loaded loaded = Load({{"tokenizer.json", kTokenizer},
                              {"tokenizer_config.json", R"({"tokenizer_class":"BertTokenizer"})"}});
  ASSERT_NE(loaded.tokenizer->tokenizer, nullptr) << loaded.tokenizer->why_none;
  EXPECT_THAT(Ids(loaded, "Hello"), ElementsAre(2, 4, 3));
  EXPECT_THAT(loaded.notes, Not(IsEmpty()));
  const Loaded lower = Load(
      {{"tokenizer.json", kTokenizer}, {"sentence_bert_config.json", R"({"do_lower_case":true})"}});
  ASSERT_NE(lower.tokenizer->tokenizer, nullptr) << lower.tokenizer->why_none;
  EXPECT_THAT(Ids(lower, "Hello"), ElementsAre(4));
}

TEST(ModelTokenizerTest, NeedsAVocabularyAlone) {
  const Loaded loaded = Load({{"vocab.txt", kVocabulary}, {"config.json", "{}"}});
  ASSERT_NE(loaded.tokenizer->tokenizer, nullptr) << loaded.tokenizer->why_none;
  EXPECT_THAT(Ids(loaded, "Hello"), ElementsAre(2, 4, 3));
}

// "aa" with the score -1 after <unk>, <s> and </s>, as protobuf writes it.
TEST(ModelTokenizerTest, NeedsASentencePieceModelAlone) {
  using namespace std::string_literals;
  const std::string model =
      "\n\7\n\5<unk>\n\5\n\3<s>\n\6\n\4</s>\n\14\n\5\342\226\201aa\25\0\0\200\277"s;
  const Loaded loaded = Load(
      {{"sentencepiece.bpe.model", model}, {"config.json", R"({"model_type":"xlm-roberta"})"}});
  ASSERT_NE(loaded.tokenizer->tokenizer, nullptr) << loaded.tokenizer->why_none;
  EXPECT_THAT(Ids(loaded, "aa"), ElementsAre(0, 4, 2));
  EXPECT_THAT(
      Load({{"sentencepiece.bpe.model", model}}).tokenizer->why_none,
      HasSubstr(
          "its tokenizer cannot be used: sentencepiece.bpe.model: a SentencePiece model of an "
          "unknown class is not supported; use tokenizer.json"));
}

TEST(ModelTokenizerTest, IsMissingForAReason) {
  EXPECT_EQ(Load({}).tokenizer->why_none, "it was not loaded from a directory with a tokenizer");
  EXPECT_EQ(Load({{"config.json", "{}"}}).tokenizer->why_none,
            "its directory has no tokenizer.json (AutoTokenizer's save_pretrained writes it), "
            "vocab.txt, vocab.json with merges.txt, or SentencePiece model");
  EXPECT_EQ(Load({{"vocab.txt", kVocabulary}}, {}).tokenizer->why_none,
            "it has no token embeddings");
  const Loaded loaded = Load({{"tokenizer.json", R"({"model":{"type":"Other"}})"}});
  EXPECT_EQ(loaded.tokenizer->tokenizer, nullptr);
  EXPECT_THAT(loaded.tokenizer->why_none, HasSubstr("its tokenizer cannot be used: "));
  EXPECT_THAT(loaded.tokenizer->why_none, HasSubstr("Other"));
}

}  // namespace model_tokenizer_test
}  // namespace attendant::server
