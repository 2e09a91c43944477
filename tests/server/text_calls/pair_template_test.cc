// Tests of rerankers that read a pair of texts in a template.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/server/support/text_models.h"
#include "tests/server/text_calls/text_fixture.h"

namespace attendant::server {
namespace pair_template_test {

ServedModels Templated() {
  auto model = std::make_shared<ServedModel>(*ModelsOfTexts().at("ranker"));
  Tokenization tokenization = *model->tokenization;
  tokenization.pair_template = {"w5 ", "w6", " ", " w7 ", " w8 w9"};
  model->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
  return {{"ranker", model}};
}

class PairTemplateTest : public TextFixture, public ::testing::Test {
 protected:
  PairTemplateTest() : TextFixture(Serving(Templated())) {}

  // The score of a query and a document.
  double Score(const std::string& query, const std::string& document) {
    const RestResult result =
        Ask("/rerank", {{"query", query}, {"texts", {document}}, {"raw_scores", true}});
    EXPECT_EQ(result.status, 200) << result.body;
    return result.json()[0]["score"].get<double>();
  }
};

TEST_F(PairTemplateTest, APairIsOneTextWithoutSpecialTokens) {
  EXPECT_NEAR(Score("w11 w12", "w48"), LogitsOf("ranker", {5, 6, 11, 12, 7, 48, 8, 9})[0], 1e-6);
}

TEST_F(PairTemplateTest, TheEndOfTheTemplateStaysWhereADocumentIsCut) {
  std::vector<int64_t> ids = {5, 6, 11, 7};
  for (int64_t i = 0; ids.size() < 62; ++i) ids.push_back(10 + i);
  ids.insert(ids.end(), {8, 9});
  EXPECT_NEAR(Score("w11", Words(80)), LogitsOf("ranker", ids)[0], 1e-6);
}

TEST(PairTemplateOnTheLeftTest, ATextMayBeCutOnTheLeft) {
  ServedModels models = Templated();
  TruncateOnTheLeft(models, "ranker");
  TextFixture texts(TextFixture::Serving({{"ranker", models["ranker"]}}));
  const RestResult result =
      texts.Ask("/rerank", {{"query", "w11"}, {"texts", {Words(80)}}, {"raw_scores", true}});
  ASSERT_EQ(result.status, 200) << result.body;
  std::vector<int64_t> ids;
  for (int64_t i = 18; i < 80; ++i) ids.push_back(10 + i);
  ids.insert(ids.end(), {8, 9});
  EXPECT_NEAR(result.json()[0]["score"].get<double>(), texts.LogitsOf("ranker", ids)[0], 1e-6);
}

TEST_F(PairTemplateTest, APromptTakesThePlaceOfTheInstruction) {
  v1::EncodeRequest request;
  request.add_texts("w11");
  request.add_text_pairs("w48");
  request.set_prompt("w13 w14");
  request.set_return_tokens(true);
  v1::EncodeResponse response;
  ASSERT_TRUE(server().Encode(request, &response).ok());
  EXPECT_THAT(response.tokens(0).ids(), testing::ElementsAre(5, 13, 14, 11, 7, 48, 8, 9));
}

TEST_F(PairTemplateTest, ItsTokensHaveNoPlace) {
  v1::EncodeRequest request;
  request.add_texts("w11");
  request.add_text_pairs("w48");
  request.set_return_tokens(true);
  v1::EncodeResponse response;
  ASSERT_TRUE(server().Encode(request, &response).ok());
  const v1::TextTokens& tokens = response.tokens(0);
  EXPECT_THAT(tokens.ids(), testing::ElementsAre(5, 6, 11, 7, 48, 8, 9));
  EXPECT_THAT(tokens.sources(), testing::Each(2));
  EXPECT_THAT(tokens.ends(), testing::Each(0));
}

}  // namespace pair_template_test
}  // namespace attendant::server
