// /entities beside transformers' pipeline: entities.json, which make_entities.py writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/text_api/form_calls.h"

namespace attendant::server {
namespace entities_test {

using Json = nlohmann::json;

const Json& Cases() {
  static const Json& cases = *new Json(
      Json::parse(std::ifstream(std::string(ATTENDANT_TEXT_API_TESTS) + "/entities.json")));
  return cases;
}

// The byte at which a code point begins.
uint32_t ByteOf(const std::string& text, uint32_t place) {
  size_t byte = 0;
  for (; byte < text.size(); ++byte) {
    if ((text[byte] & 0xc0) != 0x80 && place-- == 0) break;
  }
  return static_cast<uint32_t>(byte);
}

void Append(const Json& one, TextResult& result) {
  const std::string text = one["text"];
  v1::TextTokens& tokens = result.texts.emplace_back();
  for (size_t i = 0; i < one["tokens"].size(); ++i) {
    const uint32_t begin = one["places"][i][0], end = one["places"][i][1];
    tokens.add_ids(7);
    tokens.add_tokens(one["tokens"][i].get<std::string>());
    tokens.add_sources(one["special"][i] == 1 ? 2 : 0);
    tokens.add_begins(begin);
    tokens.add_ends(end);
    tokens.add_byte_begins(ByteOf(text, begin));
    tokens.add_byte_ends(ByteOf(text, end));
    std::vector<float> row = one["logits"][i];
    const float largest = *std::max_element(row.begin(), row.end());
    float sum = 0;
    for (float& number : row) sum += number = std::exp(number - largest);
    for (const float number : row) result.numbers.push_back(number / sum);
  }
  result.tokens.push_back(tokens.ids_size());
}

TextResult ResultOf(const Json& labels) {
  TextResult result;
  result.labels = labels.get<std::vector<std::string>>();
  result.width = static_cast<int64_t>(labels.size());
  return result;
}

// Of one text, with the aggregation.
std::string Body(const Json& text, const std::string& strategy) {
  return Json({{"inputs", text}, {"parameters", {{"aggregation_strategy", strategy}}}}).dump();
}

void ExpectEqual(const Json& made, const Json& expected, const Json& one) {
  ASSERT_EQ(made.size(), expected.size()) << one["text"] << made << expected;
  for (size_t i = 0; i < made.size(); ++i) {
    Json entity = made[i];
    EXPECT_NEAR(entity["score"].get<double>(), expected[i]["score"].get<double>(), 1e-6);
    entity["score"] = expected[i]["score"];
    const std::string text = one["text"];
    const uint32_t begin = ByteOf(text, entity["start"]), end = ByteOf(text, entity["end"]);
    if (entity.contains("index")) {
      EXPECT_EQ(entity["word"], one["tokens"][entity["index"].get<size_t>()]);
    } else {
      EXPECT_EQ(entity["word"], text.substr(begin, end - begin));
    }
    entity.erase("word");
    EXPECT_EQ(entity, expected[i]) << one["text"];
  }
}

TEST(EntitiesTest, AreThoseOfThePipeline) {
  size_t found = 0;
  for (const Json& one : Cases()) {
    for (const char* strategy : {"simple", "none"}) {
      TextResult result = ResultOf(one["labels"]);
      Append(one, result);
      const std::string answer =
          FormCall("/entities", Body(one["text"], strategy)).Answered(result);
      ExpectEqual(Json::parse(answer), one[strategy], one);
      found += one[strategy].size();
    }
  }
  EXPECT_GT(found, 100u);
}

TEST(EntitiesTest, OfABatchAreAListForEachText) {
  Json texts = Json::array(), expected = Json::array();
  TextResult result = ResultOf(Cases()[0]["labels"]);
  for (const Json& one : Cases()) {
    if (one["labels"] != Cases()[0]["labels"]) continue;
    Append(one, result);
    texts.push_back(one["text"]);
    expected.push_back(one);
  }
  const Json made =
      Json::parse(FormCall("/entities", Json({{"inputs", texts}}).dump()).Answered(result));
  ASSERT_EQ(made.size(), expected.size());
  for (size_t i = 0; i < made.size(); ++i) {
    ExpectEqual(made[i], expected[i]["simple"], expected[i]);
  }
}

TEST(EntitiesTest, OfOneTextAreWrittenLikeThis) {
  TextResult result = ResultOf({"O", "B-PER", "I-PER"});
  result.numbers = {0.25f, 0.75f, 0, 0.25f, 0, 0.75f, 1, 0, 0, 0, 1, 0};
  v1::TextTokens& tokens = result.texts.emplace_back();
  for (uint32_t i = 0; i < 4; ++i) {
    tokens.add_ids(i);
    tokens.add_tokens(absl::StrCat("##", i));
    tokens.add_sources(i == 3 ? 2 : 0);
    tokens.add_begins(i);
    tokens.add_ends(i + 1);
    tokens.add_byte_begins(i);
    tokens.add_byte_ends(i + 1);
  }
  EXPECT_EQ(FormCall("/entities", R"({"inputs": "abc"})").Answered(result),
            R"([{"entity_group":"PER","score":0.75,"word":"ab","start":0,"end":2}])");
  EXPECT_EQ(
      FormCall("/entities", R"({"inputs": "abc", "ignore_labels": ["PER"]})").Answered(result),
      R"([{"entity_group":"O","score":1,"word":"c","start":2,"end":3}])");
  EXPECT_EQ(FormCall("/entities", R"({"inputs": "abc", "aggregation_strategy": "none",
                                     "ignore_labels": ["O", "B-PER"]})")
                .Answered(result),
            R"([{"entity":"I-PER","score":0.75,"index":1,"word":"##1","start":1,"end":2}])");
  result.unknown_id = 1;
  EXPECT_EQ(FormCall("/entities", R"({"inputs": "abc", "aggregation_strategy": "none",
                                     "ignore_labels": ["O", "B-PER"]})")
                .Answered(result),
            R"([{"entity":"I-PER","score":0.75,"index":1,"word":"b","start":1,"end":2}])");
}

}  // namespace entities_test
}  // namespace attendant::server
