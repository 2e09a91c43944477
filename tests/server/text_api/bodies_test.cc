// Hostile bodies: bounds of JSON, and thousands of bodies that are nearly right.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/text_api/json_body.h"
#include "tests/server/text_api/form_calls.h"

namespace attendant::server {
namespace bodies_test {

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string MessageOf(const std::string& body, size_t most_values = 100) {
  const auto object = ParseJsonObject(body, most_values);
  return object.ok() ? "" : std::string(object.status().message());
}

TEST(JsonBoundsTest, Depth) {
  EXPECT_EQ(MessageOf("{\"a\":" + Repeated("[", 31) + Repeated("]", 31) + "}"), "");
  const std::string refused = "the body: expected at most 32 nested lists and objects; got more";
  EXPECT_EQ(MessageOf("{\"a\":" + Repeated("[", 32)), refused);
  EXPECT_EQ(MessageOf(Repeated("{\"a\":", 1000000), 2000000), refused);
  EXPECT_EQ(MessageOf(Repeated("[", 1000000), 2000000), refused);
}

TEST(JsonBoundsTest, Values) {
  const std::string refused =
      "the body: expected fewer lists, objects, strings and numbers; got too many";
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("{},", 97) + "{}]}"), "");
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("{},", 98) + "{}]}"), refused);
  EXPECT_EQ(MessageOf("{" + Repeated("\"a\":null,", 98) + "\"a\":null}"), "");
  EXPECT_EQ(MessageOf("{" + Repeated("\"a\":null,", 99) + "\"a\":null}"), refused);
  // Integers in a list of nothing else are not counted.
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("1,", 100000) + "1]}"), "");
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("1,", 100000) + "true]}"), refused);
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("1,", 50) + "true]}"), "");
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("1,", 97) + "true]}"), "");
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("1,", 98) + "true]}"), refused);
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("1,true,", 48) + "1,1]}"), "");
  EXPECT_EQ(MessageOf("{\"a\":[" + Repeated("1,true,", 49) + "1]}"), refused);
  // Other numbers are.
  for (const std::string number : {"1.5", "2147483648", "-2147483649", "18446744073709551615"}) {
    EXPECT_EQ(MessageOf("{\"a\":[" + Repeated(number + ",", 97) + number + "]}"), "") << number;
    EXPECT_EQ(MessageOf("{\"a\":[" + Repeated(number + ",", 98) + number + "]}"), refused)
        << number;
  }
  EXPECT_EQ(MessageOf("{" + Repeated("\"a\":1,", 98) + "\"a\":1}"), "");
  EXPECT_EQ(MessageOf("{" + Repeated("\"a\":1,", 99) + "\"a\":1}"), refused);
}

TEST(JsonBoundsTest, ABodyOfMegabytesOfIdsIsRead) {
  const std::string ids = "[" + Repeated("7,", 199999) + "7]";
  FormCall call("/embed", "{\"inputs\":[" + ids + "," + ids + "]}");
  const auto task = call.Read();
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ(task->inputs[1].ids->size(), 200000u);
}

// Parts of bodies, right and wrong.
const char* const kParts[] = {"{",
                              "}",
                              "[",
                              "]",
                              ",",
                              ":",
                              "\"",
                              "\"inputs\":",
                              "\"input\":",
                              "\"texts\":",
                              "\"query\":\"q\",",
                              "\"documents\":",
                              "\"text\":",
                              "\"parameters\":{",
                              "\"model\":",
                              "\"truncate\":",
                              "\"top_n\":1",
                              "\"dimensions\":3",
                              "\"embedding_types\":[\"float\"]",
                              "\"aggregation_strategy\":\"none\"",
                              "\"ignore_labels\":[]",
                              "\"source_sentence\":",
                              "\"sentences\":[\"a\"]",
                              "\"a\"",
                              "[\"a\",\"b\"]",
                              "[1,2,3]",
                              "[[1],[2]]",
                              "null",
                              "true",
                              "-1",
                              "1e9",
                              "1e999",
                              "\"\\ud83c\\udf89\"",
                              "\"\\ud800\"",
                              "\"\xff\"",
                              "\"Zo\u00eb\"",
                              " ",
                              "{\"text\":\"a\"}",
                              "[]",
                              "{}",
                              "18446744073709551616"};

// What is accepted has inputs, which are all of one form; and no body crashes a form.
void CheckBody(const TextRoute& route, const std::string& body, int* accepted) {
  FormCall call(route.path, body);
  call.request.limits = {.texts = 4, .text_characters = 4};
  call.request.main_wish = [&](const std::string& model) {
    return static_cast<TextWish>(model.size() % 5);
  };
  const auto task = call.Read();
  if (!task.ok()) {
    ASSERT_NE(KindOf(task.status()), TextErrorKind::kBroken) << task.status() << body;
    const HttpAnswer answer = TextErrorAnswer(route.errors, task.status());
    ASSERT_TRUE(nlohmann::json::accept(answer.body)) << answer.body;
    return;
  }
  ++*accepted;
  ASSERT_FALSE(task->inputs.empty()) << body;
  ASSERT_TRUE(nlohmann::json::accept(body)) << body;
  for (const TextInput& input : task->inputs) {
    ASSERT_TRUE(!input.ids || (input.text.empty() && !input.pair && !input.ids->empty())) << body;
  }
}

TEST(HostileBodiesTest, AreAcceptedOrRefused) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string body = random() % 2 == 0 ? "{\"inputs\":" : "{";
    for (uint32_t i = random() % 8; i > 0; --i) body += kParts[random() % std::size(kParts)];
    if (random() % 4 != 0) body += "}";
    CheckBody(TextRoutes()[random() % TextRoutes().size()], body, &accepted);
  }
  EXPECT_GT(accepted, 50);
}

TEST(HostileBodiesTest, WithBytesChangedAreAcceptedOrRefused) {
  const std::string bodies[] = {
      R"({"inputs": ["a", [1, 2], {"text": "b"}], "normalize": true, "parameters": {"top_k": 1}})",
      R"({"query": "q", "documents": ["a", {"text": "b"}], "texts": ["c"], "top_n": 2})",
      R"({"input": "\ud83c\udf89", "model": "m", "encoding_format": "base64", "truncate": "END"})"};
  std::mt19937 random(2);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string body = bodies[random() % 3];
    for (uint32_t i = random() % 3; i > 0; --i) {
      const size_t at = random() % body.size();
      if (random() % 2 == 0) {
        body[at] = static_cast<char>(random());
      } else {
        body.erase(at, random() % 5);
      }
    }
    CheckBody(TextRoutes()[random() % TextRoutes().size()], body, &accepted);
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace bodies_test
}  // namespace attendant::server
