// Tests of attendant-client inspect against the real server.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/engine/checkpoint/tiny_families.h"
#include "tests/integration/server_process.h"

namespace attendant::client {
namespace inspect_test {

using nlohmann::json;
using server::ReadyServer;
using ::testing::HasSubstr;

Outcome Inspect(const ReadyServer& server, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"inspect", "--address", server.address()});
  return RunWith(flags);
}

json InspectJson(const ReadyServer& server, std::vector<std::string> flags) {
  flags.emplace_back("--json");
  const Outcome outcome = Inspect(server, flags);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.exit_code == 0 ? json::parse(outcome.out) : json();
}

// The well-known probabilities of the worked example: .468, .982 and .881 are the largest of each
// row.
TEST(InspectTest, TheWorkedExample) {
  ReadyServer server;
  const json document = InspectJson(server, {"--values", "1,0,1,0;0,2,0,2;1,1,1,1"});
  const json& head = document["sequences"][0]["layers"][0]["heads"][0];
  EXPECT_NEAR(head["confidence"], (.4683105308 + .9820078649 + .8805369018) / 3, 1e-6);
  EXPECT_NEAR(head["map"][0][0], 6.337893833e-2, 1e-6);
  EXPECT_NEAR(head["map"][2][1], .8805369018, 1e-6);
  EXPECT_NEAR(head["largest_asymmetry"], .8805369018 - 1.798610144e-2, 1e-6);
}

TEST(InspectTest, EveryLayerAndHeadOfAPaddedBatch) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const json document =
      InspectJson(server, {"--token-ids", "1,2,3,4;5,6,7,8", "--mask", "1,1,1,1;1,0,1,0"});
  ASSERT_EQ(document["sequences"].size(), 2u);
  EXPECT_EQ(document["sequences"][1]["positions"], json({0, 2}));
  EXPECT_EQ(document["sequences"][1]["token_ids"], json({5, 7}));
  for (const json& sequence : document["sequences"]) {
    ASSERT_EQ(sequence["layers"].size(), 2u);
    for (const json& layer : sequence["layers"]) {
      ASSERT_EQ(layer["heads"].size(), 4u);
      EXPECT_GT(layer["token_uniformity"], 0);
      for (const json& head : layer["heads"]) {
        for (const json& row : head["map"]) {
          double sum = 0;
          for (const json& p : row) sum += p.get<double>();
          EXPECT_NEAR(sum, 1, 1e-5);
        }
      }
    }
  }
}

// A class token comes before the patches.
TEST(InspectTest, FeaturesBehindTheModelsOwnRows) {
  const std::vector<TinyFamily> families = TinyFamilies();
  const auto vit = std::find_if(families.begin(), families.end(),
                                [](const TinyFamily& family) { return family.name == "vit"; });
  ASSERT_NE(vit, families.end());
  const TempFolder folder;
  WriteFamily(folder, *vit);
  ReadyServer server({"--model=v=" + folder.path()});
  const Outcome told = RunWith({"models", "v", "--address", server.address(), "--json"});
  const json front = json::parse(told.out)["models"][0]["front"];
  ASSERT_EQ(front["own_rows"], 1);
  const int64_t patches = front["features"];
  const json document =
      InspectJson(server, {"--features", "--generate", absl::StrCat("1x", patches)});
  const json& sequence = document["sequences"][0];
  EXPECT_EQ(sequence["positions"].size(), static_cast<size_t>(1 + patches));
  EXPECT_EQ(sequence["layers"][0]["heads"][0]["map"].size(), static_cast<size_t>(1 + patches));
}

// One layer per answer, and maps with fewer cells than tokens.
TEST(InspectTest, AsksInPartsForWhatOneAnswerDoesNotHold) {
  const std::vector<std::string> flags = {"--generate", "1x100x32", "--cells", "16"};
  ReadyServer server({"--model=t=synthetic:tiny"});
  ReadyServer small({"--model=t=synthetic:tiny", "--max-answer-bytes=250KiB"});
  const json whole = InspectJson(server, flags);
  EXPECT_EQ(whole["sequences"][0]["map_cells"], 16);
  EXPECT_EQ(whole["sequences"][0]["layers"][1]["heads"][3]["map"].size(), 16u);
  EXPECT_EQ(InspectJson(small, flags), whole);
}

// Singular values are of up to 1024 tokens.
TEST(InspectTest, ALongSequenceHasNoRank) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const Outcome outcome = Inspect(server, {"--generate", "1x1025", "--layers", "0:1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("        -         -  none\n"));
}

TEST(InspectTest, PrunedHeadsKeepTheirNumbersFree) {
  const TempFolder folder;
  std::ofstream(folder.path() + "/prune.json") << R"({"0": [0, 2]})";
  ReadyServer server({"--model=t=synthetic:tiny,prune=" + folder.path() + "/prune.json"});
  const json document = InspectJson(server, {"--token-ids", "1,2,3"});
  const json& layers = document["sequences"][0]["layers"];
  ASSERT_EQ(layers[0]["heads"].size(), 2u);
  EXPECT_EQ(layers[0]["heads"][0]["head"], 1);
  EXPECT_EQ(layers[0]["heads"][1]["head"], 3);
  EXPECT_EQ(layers[1]["heads"][3]["head"], 3);
  const Outcome explained =
      RunWith({"explain", "--address", server.address(), "--generate", "1x2", "--json"});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  const json heads = json::parse(explained.out)["heads"];
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0]["head"], 1);
  EXPECT_EQ(heads[1]["head"], 3);
}

// 1 comes three times, 2 twice, and 3 and 4 once each.
TEST(InspectTest, WhoLooksAtRareTokens) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const std::vector<std::string> flags = {"--token-ids", "1,2,3,1;1,4,2,4", "--mask",
                                          "1,1,1,1;1,1,1,0"};
  const json document = InspectJson(server, flags);
  EXPECT_EQ(document["sequences"][0]["rare_ids"], json({3}));
  EXPECT_EQ(document["sequences"][1]["rare_ids"], json({4}));
  for (const json& head : document["sequences"][0]["layers"][1]["heads"]) {
    int looking = 0;
    for (const json& row : head["map"]) {
      const auto largest = std::max_element(row.begin(), row.end());
      looking += largest - row.begin() == 2 ? 1 : 0;
    }
    EXPECT_EQ(head["rare_share"], looking / 4.0);
  }
  EXPECT_THAT(Inspect(server, flags).out, HasSubstr("RARE IDS"));
  const json without = InspectJson(server, {"--generate", "1x5x32"});
  EXPECT_EQ(without["sequences"][0]["layers"][0]["heads"][0]["rare_share"], nullptr);
}

TEST(InspectTest, ASpanOfLayers) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const json document = InspectJson(server, {"--generate", "1x5x32", "--layers", "1:1"});
  ASSERT_EQ(document["sequences"][0]["layers"].size(), 1u);
  EXPECT_EQ(document["sequences"][0]["layers"][0]["layer"], 1);
  EXPECT_GT(document["sequences"][0]["input_uniformity"], 0.5);
}

TEST(InspectTest, WritesAPageAndPrintsATable) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const std::string path = testing::TempDir() + "attendant_inspect.html";
  const Outcome outcome =
      Inspect(server, {"--token-ids", "1,2,3", "--html", path, "--tokens", "[CLS] , [SEP]"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("t, sequence 0: 3 tokens\n"));
  EXPECT_THAT(outcome.out, HasSubstr("POSITIONAL HEADS\n      0 "));
  EXPECT_THAT(outcome.out, HasSubstr(absl::StrCat("page -> ", path, "\n")));
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  EXPECT_THAT(page.str(), HasSubstr("\"token_ids\":[1,2,3]"));
  EXPECT_THAT(page.str(), HasSubstr(R"("token_texts":["[CLS]",",","[SEP]"])"));
  std::remove(path.c_str());
}

TEST(InspectTest, TextsOfTokensFromAFile) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const std::string path = testing::TempDir() + "attendant_inspect_tokens";
  std::ofstream(path) << "a b  c\r\nd e\n";
  const json document = InspectJson(
      server, {"--token-ids", "1,2,3;4,5,6", "--mask", "1,1,1;1,1,0", "--tokens-file", path});
  EXPECT_EQ(document["sequences"][0]["token_texts"], json({"a", "b", "c"}));
  EXPECT_EQ(document["sequences"][1]["token_texts"], json({"d", "e"}));
  std::remove(path.c_str());
}

TEST(InspectTest, Refusals) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  const auto expect = [&](const std::vector<std::string>& flags, int code,
                          const std::string& message) {
    const Outcome outcome = Inspect(server, flags);
    EXPECT_EQ(outcome.exit_code, code) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  expect({"--model", "u", "--token-ids", "1"}, 1, "NOT_FOUND");
  expect({}, 2, "expected one of --input, --values, --generate or --token-ids; got none");
  expect({"--token-ids", "1", "--layers", "1"}, 2, "--layers: expected FIRST:COUNT");
  expect({"--token-ids", "1", "--layers", "1:9"}, 1, "INVALID_ARGUMENT");
  expect({"--token-ids", "100"}, 1, "token_ids[0, 0]: expected 0..99; got 100");
  expect({"--token-ids", "1", "--mask", "0"}, 2, "no token is kept");
  expect({"--token-ids", "1", "--cells", "4"}, 2, "--cells");
  expect({"--token-ids", "1", "--tokens", "a b"}, 2,
         "--tokens: sequence 0: expected 1 texts; got 2");
  expect({"--token-ids", "1", "--tokens-file", "/nowhere"}, 2, "--tokens-file: /nowhere");
  expect({"--token-ids", "1", "--tokens", "a", "--tokens-file", "b"}, 2, "--tokens");
  expect({"--token-ids", "1", "--html", "/nowhere/page.html"}, 2, "/nowhere/page.html");
}

}  // namespace inspect_test
}  // namespace attendant::client
