// Tests of the token ids that /v1/embeddings takes for ids of the model's tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/text/tokenizer.h"
#include "tests/server/text_calls/text_fixture.h"

namespace attendant::server {
namespace text_ids_test {

// Texts end with [SEP], 3.
std::shared_ptr<const ModelTokenizer> EndingTokenizer() {
  constexpr char kJson[] = R"({"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
      "decoder": null, "model": {"type": "WordLevel", "unk_token": "[UNK]",
        "vocab": {"[PAD]": 0, "[UNK]": 1, "a": 2, "[SEP]": 3}}})";
  auto tokenizer = std::make_shared<ModelTokenizer>();
  tokenizer->bytes_per_second = 1e6;
  tokenizer->tokenizer = text::Tokenizer::Load(kJson, {}, nullptr).value();
  return tokenizer;
}

// A server of "tiny", which has 64 positions, with this tokenizer.
class Server {
 public:
  explicit Server(const Tokenization& tokenization,
                  std::shared_ptr<const ModelTokenizer> tokenizer = WordsTokenizer())
      : rest_(Serving(tokenization, std::move(tokenizer))) {}

  // "none", or the place that the refusal of the ids names: "begin with 2" or "end with 3".
  std::string Refusal(const std::vector<int>& ids) {
    const RestResult result = rest_.Ask("/v1/embeddings", {{"input", ids}});
    if (result.status == 200) return "none";
    EXPECT_EQ(result.status, 400) << result.body;
    const std::string message = result.json()["error"]["message"];
    const std::string before = "input: expected token ids of the model, which ";
    EXPECT_EQ(message.substr(0, before.size()), before) << message;
    return message.substr(before.size(), message.find(" (") - before.size());
  }

 private:
  static TestServerOptions Serving(const Tokenization& tokenization,
                                   std::shared_ptr<const ModelTokenizer> tokenizer) {
    auto model = std::make_shared<ServedModel>(*ModelsOfTexts().at("tiny"));
    model->tokenization = std::make_shared<const Tokenization>(tokenization);
    model->tokenizer = std::move(tokenizer);
    return TextFixture::Serving({{"tiny", model}});
  }

  TextFixture rest_;
};

// `count` ids, with these at both ends.
std::vector<int> Ids(size_t count, int first, int last) {
  std::vector<int> ids(count, 11);
  ids.front() = first;
  ids.back() = last;
  return ids;
}

TEST(TextIdsTest, HaveTheSpecialTokensOfBothEnds) {
  Server server({});
  EXPECT_EQ(server.Refusal({2, 11, 3}), "none");
  EXPECT_EQ(server.Refusal({11, 48, 3}), "begin with 2");
  EXPECT_EQ(server.Refusal({2, 11, 48}), "end with 3");
}

TEST(TextIdsTest, MayLoseTheLastWhereTheClientTruncates) {
  Server both({});
  EXPECT_EQ(both.Refusal(Ids(63, 2, 11)), "end with 3");
  EXPECT_EQ(both.Refusal(Ids(64, 2, 11)), "none");
  EXPECT_EQ(both.Refusal(Ids(65, 2, 11)), "none");
  EXPECT_EQ(both.Refusal(Ids(64, 11, 3)), "begin with 2");
  Server ending({}, EndingTokenizer());
  EXPECT_EQ(ending.Refusal({11, 3}), "none");
  EXPECT_EQ(ending.Refusal(Ids(63, 11, 11)), "end with 3");
  EXPECT_EQ(ending.Refusal(Ids(64, 11, 11)), "none");
}

TEST(TextIdsTest, TheMaximumIsTheModels) {
  Tokenization tokenization;
  tokenization.max_sequence_length = 8;
  Server server(tokenization, EndingTokenizer());
  EXPECT_EQ(server.Refusal(Ids(7, 11, 11)), "end with 3");
  EXPECT_EQ(server.Refusal(Ids(8, 11, 11)), "none");
}

// As for SigLIP 2, whose texts end with <pad>.
TEST(TextIdsTest, MayEndWithPaddingWhereTextsDo) {
  Server plain({}, EndingTokenizer());
  EXPECT_EQ(plain.Refusal({11, 3, 0, 0}), "end with 3");
  Tokenization tokenization;
  tokenization.padding = {.length = 16, .id = 0};
  Server padding(tokenization, EndingTokenizer());
  EXPECT_EQ(padding.Refusal({11, 3, 0, 0}), "none");
}

TEST(TextIdsTest, AreBareWhereTextsAre) {
  Tokenization tokenization;
  tokenization.leaves_out_special_tokens = true;
  EXPECT_EQ(Server(tokenization).Refusal({11, 48}), "none");
}

}  // namespace text_ids_test
}  // namespace attendant::server
