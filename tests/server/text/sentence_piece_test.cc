#include "server/text/models/sentence_piece.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/text/models/model.h"
#include "tests/server/text/test_files.h"

namespace attendant::text {
namespace sentence_piece_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

// Fields of a protobuf message, as bytes.
class Message {
 public:
  Message& Number(int field, uint64_t value) {
    return Append([&](auto& out) {
      out.WriteVarint32(static_cast<uint32_t>(field << 3));
      out.WriteVarint64(value);
    });
  }
  Message& Float(int field, float value) {
    return Append([&](auto& out) {
      out.WriteVarint32(static_cast<uint32_t>(field << 3 | 5));
      out.WriteLittleEndian32(std::bit_cast<uint32_t>(value));
    });
  }
  Message& Bytes(int field, const std::string& value) {
    return Append([&](auto& out) {
      out.WriteVarint32(static_cast<uint32_t>(field << 3 | 2));
      out.WriteVarint32(static_cast<uint32_t>(value.size()));
      out.WriteString(value);
    });
  }
  Message& Bytes(int field, const Message& value) { return Bytes(field, value.bytes()); }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename Write>
  Message& Append(Write write) {
    google::protobuf::io::StringOutputStream stream(&bytes_);
    google::protobuf::io::CodedOutputStream out(&stream);
    write(out);
    return *this;
  }

  std::string bytes_;
};

constexpr int kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4;

struct TestPiece {
  std::string text;
  float score = 0;
  int type = kNormal;
};

Message WithPieces(const std::vector<TestPiece>& pieces) {
  Message model;
  for (const TestPiece& piece : pieces) {
    model.Bytes(1, Message().Bytes(1, piece.text).Float(2, piece.score).Number(3, piece.type));
  }
  return model;
}

const std::vector<TestPiece>& FairseqPieces() {
  static const auto* const pieces = new std::vector<TestPiece>{{"<unk>", 0, kUnknown},
                                                               {"<s>", 0, kControl},
                                                               {"</s>", 0, kControl},
                                                               {"▁a", -1},
                                                               {"▁", -2},
                                                               {"b", -2.5},
                                                               {"c", -3},
                                                               {"<u>", 0, kUserDefined}};
  return *pieces;
}

std::string Config(const std::string& name, const std::string& more = "") {
  return absl::StrCat(R"({"tokenizer_class":")", name, "\"", more, "}");
}

std::vector<uint32_t> Ids(const TestFiles& files, const std::string& text) {
  const auto effective = LoadFiles(files);
  EXPECT_TRUE(effective.ok()) << effective.status();
  return effective.ok() ? effective->tokenizer->Encode(text, {})->ids : std::vector<uint32_t>();
}

std::string Error(const TestFiles& files, absl::StatusCode code) {
  const auto effective = LoadFiles(files);
  EXPECT_EQ(effective.status().code(), code);
  return std::string(effective.status().message());
}

std::string ReadError(const std::string& bytes) {
  const auto model = ReadSentencePiece(bytes, "spm.model");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(model.status().message());
}

TEST(SentencePieceTest, ReadsWhatTransformersReads) {
  Message model = WithPieces({{"[UNK]", 0, kUnknown}, {"[CLS]", 0, kControl}, {"a", -1.5}});
  model.Bytes(2, Message().Number(3, 2).Number(40, 1).Bytes(45, std::string("[UNK]")).Float(10, 1));
  model.Bytes(3, Message().Bytes(1, std::string("nmt")).Bytes(2, std::string("map")).Number(3, 0));
  model.Bytes(9, std::string("of a newer version")).Number(1, 7);
  const auto read = ReadSentencePiece(model.bytes(), "spm.model");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(
      read->pieces,
      ElementsAre(Field(&SentencePiece::text, "[UNK]"), Field(&SentencePiece::text, "[CLS]"),
                  AllOf(Field(&SentencePiece::text, "a"), Field(&SentencePiece::score, -1.5f))));
  EXPECT_THAT(read->added, ElementsAre("[CLS]"));
  EXPECT_EQ(read->unk_id, 1);
  EXPECT_FALSE(read->is_unigram);
  EXPECT_EQ(read->charsmap, "map");
}

TEST(SentencePieceTest, RefusesOtherFiles) {
  const std::string model = WithPieces({{"a", -1}}).bytes();
  EXPECT_EQ(ReadError(""), "spm.model: expected a SentencePiece model; got no pieces");
  EXPECT_EQ(ReadError("{}"), "spm.model: expected a SentencePiece model; got other bytes");
  for (size_t size = 1; size < model.size(); ++size) {
    EXPECT_EQ(ReadError(model.substr(0, size)),
              "spm.model: expected a SentencePiece model; got other bytes");
  }
  EXPECT_EQ(ReadError(WithPieces({{"a"}, {""}}).bytes()),
            "spm.model: pieces[1]: expected 1..1024 bytes; got 0");
  EXPECT_EQ(ReadError(WithPieces({{std::string(1025, 'a')}}).bytes()),
            "spm.model: pieces[0]: expected 1..1024 bytes; got 1025");
  EXPECT_EQ(ReadError(WithPieces({{"\xff"}}).bytes()),
            "spm.model: pieces[0]: expected UTF-8; got other bytes");
  EXPECT_EQ(ReadError(WithPieces({{"a", std::numeric_limits<float>::infinity()}}).bytes()),
            "spm.model: pieces[0]: expected a finite score; got inf");
  std::string many;
  for (size_t i = 0; i <= SentencePieceModel::kMaxPieces; ++i)
    many +=
        "\x0a\x03\x0a\x01"
        "a";
  EXPECT_EQ(ReadError(many), "spm.model: expected at most 4194304 pieces; got more");
  // They are counted before the file is parsed.
  EXPECT_EQ(ReadError(many + "{}"), "spm.model: expected at most 4194304 pieces; got more");
}

TEST(SentencePieceTest, MergesAreAllPairsThatMakeAPiece) {
  SentencePieceModel model;
  for (const char* piece : {"<unk>", "é", "a", "aé", "éa", "aéa", "a"}) {
    model.pieces.push_back({piece});
  }
  EXPECT_EQ(BpeJson(model),
            R"({"model":{"type":"BPE","vocab":{"<unk>":0,"é":1,"aé":3,"éa":4,"aéa":5,"a":6},)"
            R"("merges":[["a","é"],["é","a"],["a","éa"],["aé","a"]]}})");
}

TEST(SentencePieceTest, FilesOfXlmRobertaHaveFairseqsTokens) {
  const TestFiles files = {
      .tokenizer_config_json = Config("XLMRobertaTokenizer"),
      .sentence_pieces = {{"sentencepiece.bpe.model", WithPieces(FairseqPieces()).bytes()}}};
  // "▁a" is the fourth piece, and the fifth token; the user's symbol is found in any text.
  EXPECT_THAT(Ids(files, "a bx<u>"), ElementsAre(0, 4, 5, 6, 3, 8, 2));
  EXPECT_THAT(Ids(files, "<mask>"), ElementsAre(0, 9, 2));
  EXPECT_THAT(LoadFiles(files)->notes,
              ElementsAre("no tokenizer.json: transformers' XLMRobertaTokenizer is built from "
                          "sentencepiece.bpe.model"));
}

TEST(SentencePieceTest, ClassesHaveTheirOwnTokens) {
  const std::string model = WithPieces(FairseqPieces()).bytes();
  const auto ids = [&](const std::string& file, const std::string& config,
                       const std::string& text) {
    return Ids({.tokenizer_config_json = config, .sentence_pieces = {{file, model}}}, text);
  };
  const std::string bpe = "sentencepiece.bpe.model";
  EXPECT_THAT(ids(bpe, Config("CamembertTokenizer"), "a b<mask>"), ElementsAre(5, 7, 8, 9, 12, 6));
  EXPECT_THAT(ids(bpe, Config("MBartTokenizer"), "a<mask>"), ElementsAre(4, 34, 2, 12));
  EXPECT_THAT(ids(bpe, Config("MBartTokenizer", R"(,"src_lang":"ro_RO")"), "a"),
              ElementsAre(4, 2, 28));
  EXPECT_THAT(ids(bpe, Config("MBart50Tokenizer"), "a<mask>"), ElementsAre(12, 4, 61, 2));
  EXPECT_THAT(ids("spiece.model", Config("T5Tokenizer", R"(,"extra_ids":2)"), "a<extra_id_0>"),
              ElementsAre(3, 9, 2));
  EXPECT_THAT(ids("spm.model",
                  Config("DebertaV2Tokenizer",
                         R"(,"unk_token":"<unk>","cls_token":"<s>","sep_token":"</s>")"),
                  "a[MASK]"),
              ElementsAre(1, 3, 11, 2));
  EXPECT_THAT(ids("tokenizer.model", Config("LlamaTokenizer", R"(,"add_bos_token":true)"), "b"),
              ElementsAre(1, 4, 5));
  EXPECT_THAT(ids("tokenizer.model", Config("GemmaTokenizer", R"(,"add_eos_token":true)"), "b <u>"),
              ElementsAre(5, 4, 7, 9));
  EXPECT_THAT(ids(bpe, Config("NllbTokenizer", R"(,"extra_special_tokens":["eng_Latn"])"), "b"),
              ElementsAre(10, 5, 6, 2));
  const std::string ends = R"(,"cls_token":"<s>","sep_token":"</s>")";
  EXPECT_THAT(ids("spiece.model", Config("AlbertTokenizer", ends), "A <u>"),
              ElementsAre(1, 3, 7, 2));
  EXPECT_THAT(
      ids("spiece.model", Config("AlbertTokenizer", ends + R"(,"add_bos_token":false)"), "A"),
      ElementsAre(3));
  EXPECT_THAT(ids("spiece.model", Config("BigBirdTokenizer", ends), "a [MASK]b"),
              ElementsAre(1, 3, 9, 4, 5, 2));
  // The class rebuilds its template from add_bos_token and add_eos_token, so it adds no tokens.
  EXPECT_THAT(ids("sentencepiece.model", Config("RemBertTokenizer", ends), "a"), ElementsAre(3));
  EXPECT_THAT(ids("spiece.model",
                  Config("PegasusTokenizer", R"(,"offset":4,"unk_token":"</s>","eos_token":"<s>")"),
                  "a<u>"),
              ElementsAre(7, 11, 1));
}

// Of equal tokens in the list of an older file, mBART takes the first, and other classes the flags
// of the last.
TEST(SentencePieceTest, EqualTokensHaveTheFlagsOfTheFirstOrTheLast) {
  const auto ids = [](const std::string& name, const std::string& tokens) {
    return Ids({.tokenizer_json =
                    R"({"model":{"type":"Unigram","unk_id":3,"vocab":[["<s>",0],["<pad>",0],)"
                    R"(["</s>",0],["<unk>",0],["▁a",-1],["▁",-2],["en_XX",0]]}})",
                .tokenizer_config_json = Config(name),
                .special_tokens_map_json = R"({"additional_special_tokens":[)" + tokens + "]}"},
               "a<x>");
  };
  const std::string any = R"("<x>")", word = R"({"content":"<x>","single_word":true})";
  EXPECT_THAT(ids("MBartTokenizer", word + "," + any), ElementsAre(4, 3, 2, 6));
  EXPECT_THAT(ids("MBartTokenizer", any + "," + word), ElementsAre(4, 32, 2, 6));
  EXPECT_THAT(ids("T5Tokenizer", word + "," + any), ElementsAre(4, 7, 2));
  EXPECT_THAT(ids("T5Tokenizer", any + "," + word), ElementsAre(4, 2, 2));
}

// The class's mask takes the space before it, but a mask of the model is found as it is.
TEST(SentencePieceTest, SymbolsOfTheModelHaveItsFlags) {
  std::vector<TestPiece> pieces = FairseqPieces();
  const auto ids = [&](int type) {
    pieces.push_back({"[MASK]", 0, type});
    return Ids({.tokenizer_config_json =
                    Config("BigBirdTokenizer", R"(,"cls_token":"<s>","sep_token":"</s>")"),
                .sentence_pieces = {{"spiece.model", WithPieces(pieces).bytes()}}},
               "a [MASK]");
  };
  EXPECT_THAT(ids(kNormal), ElementsAre(1, 3, 8, 2));
  pieces.pop_back();
  EXPECT_THAT(ids(kUserDefined), ElementsAre(1, 3, 4, 8, 2));
}

TEST(SentencePieceTest, TokenizerModelCountsForEveryClass) {
  EXPECT_THAT(Ids({.tokenizer_config_json = Config("XLMRobertaTokenizer"),
                   .sentence_pieces = {{"tokenizer.model", WithPieces(FairseqPieces()).bytes()}}},
                  "a"),
              ElementsAre(0, 4, 2));
}

// Two of "b" are as likely as "bb", which begins first; in decimals they are likelier.
TEST(SentencePieceTest, ScoresAreExact) {
  const std::string model =
      WithPieces(
          {{"<pad>"}, {"</s>"}, {"<unk>", 0, kUnknown}, {"▁", -1}, {"b", -8.3f}, {"bb", 2 * -8.3f}})
          .bytes();
  EXPECT_THAT(Ids({.tokenizer_config_json = Config("T5Tokenizer", R"(,"extra_ids":0)"),
                   .sentence_pieces = {{"spiece.model", model}}},
                  "bb"),
              ElementsAre(3, 5, 1));
}

TEST(SentencePieceTest, RefusesWhatTransformersReadsOtherwise) {
  const std::string model = WithPieces(FairseqPieces()).bytes();
  const std::string bpe = WithPieces({{"<unk>"}, {"a"}}).Bytes(2, Message().Number(3, 2)).bytes();
  const auto error = [](const std::string& config, const std::string& file,
                        const std::string& bytes,
                        absl::StatusCode code = absl::StatusCode::kUnimplemented) {
    return Error({.tokenizer_config_json = config, .sentence_pieces = {{file, bytes}}}, code);
  };
  EXPECT_EQ(
      error(Config("DebertaV2Tokenizer"), "spiece.model", model),
      "spiece.model: a SentencePiece model of DebertaV2Tokenizer is not supported; use the name "
      "spm.model");
  for (const char* name : {"XLNetTokenizer", "PreTrainedTokenizerFast"}) {
    EXPECT_EQ(error(Config(name), "spiece.model", model),
              absl::StrCat("spiece.model: a SentencePiece model of ", name,
                           " is not supported; use tokenizer.json, which AutoTokenizer's "
                           "save_pretrained writes"));
  }
  EXPECT_THAT(error("{}", "tokenizer.model", model),
              HasSubstr("model of an unknown class is not supported"));
  EXPECT_EQ(error(Config("CamembertTokenizer"), "sentencepiece.bpe.model", bpe),
            "sentencepiece.bpe.model: a model of another type than Unigram is not supported; use "
            "Unigram");
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(error(Config("DebertaV2Tokenizer"), "spm.model", "x", kInvalid),
            "spm.model: expected a SentencePiece model; got other bytes");
  EXPECT_EQ(error(Config("T5Tokenizer", R"(,"extra_ids":3)"), "spiece.model",
                  WithPieces({{"<pad>"}, {"▁<extra_id_0>", 0, kUserDefined}}).bytes(), kInvalid),
            "tokenizer_config.json.extra_ids: expected 0 or 1, as in spiece.model; got 3");
  EXPECT_EQ(error(Config("PegasusTokenizer"), "spiece.model",
                  WithPieces({{"<pad>"}, {"</s>"}, {"a"}}).bytes(), kInvalid),
            "model.vocab: expected \"<unk>\" with a score of 0; got none");
  EXPECT_EQ(error(Config("MBartTokenizer", R"(,"src_lang":"xx_XX")"), "sentencepiece.bpe.model",
                  model, kInvalid),
            "tokenizer_config.json: expected special tokens of the vocabulary; got \"xx_XX\"");
  EXPECT_EQ(error(Config("DebertaV2Tokenizer"), "spm.model",
                  WithPieces({{"a", -1}}).Bytes(2, Message().Number(40, 5)).bytes(), kInvalid),
            "model.unk_id: expected less than 1; got 5");
}

// A tokenizer.json beside the model counts more.
TEST(SentencePieceTest, IsNotReadBesideTokenizerJson) {
  EXPECT_THAT(Ids({.tokenizer_json =
                       R"({"model":{"type":"WordLevel","vocab":{"a":7,"u":1},"unk_token":"u"}})",
                   .sentence_pieces = {{"spm.model", "not one"}}},
                  "a"),
              ElementsAre(7));
}

}  // namespace sentence_piece_test
}  // namespace attendant::text
