#include "engine/checkpoint/files/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/families/config_reader.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {
namespace json_test {

using ::testing::HasSubstr;

std::string Refusal(const std::string& text, const JsonLimits& limits = {}) {
  const absl::Status status = ParseJson(text, limits, "some.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), HasSubstr("some.json: "));
  return std::string(status.message());
}

TEST(ParseJson, GivesTheDocument) {
  const absl::StatusOr<Json> json =
      ParseJson(R"({"a": [1, -2, 2.5, true, null, "x", {"b": {}}], "c": []} )", {}, "f");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->dump(), R"({"a":[1,-2,2.5,true,null,"x",{"b":{}}],"c":[]})");
}

TEST(ParseJson, RefusesTheSameKeyTwice) {
  EXPECT_THAT(Refusal(R"({"a": 1, "b": {"a": 1}, "a": 2})"), HasSubstr("key 'a' twice"));
  EXPECT_THAT(Refusal(R"({"a": 1, "\u0061": 2})"), HasSubstr("key 'a' twice"));
}

TEST(ParseJson, RefusesWhatIsNotStrict) {
  for (const char* text :
       {"", "{", "{} {}", "{'a': 1}", "[1,]", "// c\n{}", "[01]", "[+1]", "[NaN]", "\"\xff\"",
        "\"\xc0\xaf\"", "[\"\\ud800\"]", "[1e999]", "nul"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("not strict JSON in UTF-8 at byte")) << text;
  }
}

TEST(ParseJson, KeepsItsLimits) {
  const JsonLimits limits = {/*max_bytes=*/20, /*max_depth=*/3, /*max_values=*/5};
  EXPECT_TRUE(ParseJson("[[[1]]]", limits, "f").ok());
  EXPECT_THAT(Refusal("[[[[1]]]]", limits), HasSubstr("nested deeper than 3"));
  EXPECT_TRUE(ParseJson("[1,2,3,4]", limits, "f").ok());
  EXPECT_THAT(Refusal("[1,2,3,4,5]", limits), HasSubstr("expected at most 5 values"));
  EXPECT_THAT(Refusal("[                   ]", limits),
              HasSubstr("expected at most 20 bytes of JSON; got 21"));
  EXPECT_THAT(Refusal(std::string(500'000, '[')), HasSubstr("nested deeper than 32"));
}

TEST(ReadJsonFile, KeepsItsLimits) {
  TempFolder folder;
  folder.Write("a.json", "[1, 2, 3]");
  EXPECT_TRUE(ReadJsonFile(folder.File("a.json"), {9, 1, 9}).ok());
  EXPECT_THAT(ReadJsonFile(folder.File("a.json"), {8, 1, 9}).status().ToString(),
              HasSubstr("a.json: expected at most 8 bytes; got 9"));
  EXPECT_EQ(ReadJsonFile(folder.File("b.json"), {}).status().code(), absl::StatusCode::kNotFound);
}

TEST(AsCount, TakesPlainIntegersAlone) {
  EXPECT_EQ(AsCount(Json::parse("0")), 0);
  EXPECT_EQ(AsCount(Json::parse("9223372036854775807")), INT64_MAX);
  for (const char* text : {"9223372036854775808", "18446744073709551616", "-1", "-0", "1.0", "1e3",
                           "\"1\"", "true", "null", "[]"}) {
    EXPECT_EQ(AsCount(Json::parse(text)), std::nullopt) << text;
  }
}

std::string ProblemWith(const std::string& text, void (*read)(ConfigReader&)) {
  const Json json = Json::parse(text);
  Problems problems("c.json");
  ConfigReader reader(json, problems);
  read(reader);
  return std::string(problems.ToStatus().message());
}

TEST(ConfigReader, NamesFieldExpectedAndFound) {
  const auto integer = [](ConfigReader& reader) { reader.Integer({"n", "m"}, {2, 5}); };
  EXPECT_EQ(ProblemWith(R"({"m": 5})", integer), "");
  EXPECT_EQ(ProblemWith(R"({"n": 6})", integer),
            "c.json: n or m: expected an integer in 2..5; got 6");
  EXPECT_THAT(ProblemWith(R"({"n": 3.0})", integer), HasSubstr("got 3.0"));
  EXPECT_THAT(ProblemWith(R"({"n": "3"})", integer), HasSubstr("got '3'"));
  EXPECT_THAT(ProblemWith("{}", integer), HasSubstr("missing; expected "));
  EXPECT_THAT(ProblemWith(R"({"n": 2, "m": 3})", integer),
              HasSubstr("n or m: expected one value; got 2 and 3"));
  EXPECT_THAT(ProblemWith("[]", integer), HasSubstr("2 problems: expected an object; got a list"));

  const auto number = [](ConfigReader& reader) { reader.Number({"x"}, 0.5f); };
  EXPECT_EQ(ProblemWith(R"({"x": 1e-5})", number), "");
  EXPECT_THAT(ProblemWith(R"({"x": -1e-5})", number),
              HasSubstr("x: expected a number in 0..0.5; got -1e-05"));
  EXPECT_THAT(ProblemWith(R"({"x": 1})", number), HasSubstr("got 1"));

  const auto boolean = [](ConfigReader& reader) { reader.Boolean({"b"}); };
  EXPECT_EQ(ProblemWith(R"({"b": false})", boolean), "");
  EXPECT_THAT(ProblemWith(R"({"b": "false"})", boolean),
              HasSubstr("b: expected true or false; got 'false'"));
  EXPECT_THAT(ProblemWith(R"({"b": 1})", boolean), HasSubstr("got 1"));

  const auto text = [](ConfigReader& reader) { reader.Text({"t"}); };
  EXPECT_EQ(ProblemWith(R"({"t": "x"})", text), "");
  EXPECT_THAT(ProblemWith(R"({"t": {}})", text), HasSubstr("t: expected a string; got an object"));
}

TEST(ConfigReader, TakesNullForAbsent) {
  const Json json = Json::parse(R"({"n": null})");
  Problems problems("c.json");
  ConfigReader reader(json, problems);
  EXPECT_EQ(reader.Integer({"n"}, {0, 9}, 7), 7);
  EXPECT_EQ(reader.Text({"n"}, "x"), "x");
  EXPECT_TRUE(reader.Boolean({"n"}, true));
  EXPECT_TRUE(problems.empty());
}

TEST(Problems, AreOneLineThatEnds) {
  Problems problems("f");
  for (int i = 0; i < 1003; ++i) problems.Add(absl::StrCat("p", i));
  problems.Add("p0");
  const std::string message(problems.ToStatus().message());
  EXPECT_THAT(message, HasSubstr("f: 1004 problems: p0; p1; "));
  EXPECT_THAT(message, HasSubstr("p999; and 4 more"));
  EXPECT_EQ(Quoted("a\nb\x01"), R"('a\nb\x01')");
  EXPECT_EQ(Quoted(std::string(300, 'x')), "'" + std::string(200, 'x') + "…'");
}

}  // namespace json_test
}  // namespace attendant
