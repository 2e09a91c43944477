#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/model/pruned_heads.h"
#include "server/describe/model_report.h"
#include "server/settings/model_setting.h"

namespace attendant::server {
namespace report_json_test {

using nlohmann::json;

TEST(ReportJsonTest, HoldsTheWholeReport) {
  Settings settings;
  settings.models = {*ParseModelSource("synthetic:tiny,dtype=bf16,emulate=true,gemm=onednn")};
  const json document = json::parse(
      ToJson(InspectModel(settings, ThreadPlan{.instances = 1, .threads_per_instance = 2},
                          MemoryLimit{int64_t{1} << 40, "of the test"})));
  EXPECT_EQ(document["source"], "synthetic:tiny");
  EXPECT_EQ(document["served"], true);
  EXPECT_EQ(document["refusals"], json::array());
  const json& description = document["description"];
  EXPECT_EQ(description["compute_type"], "bf16");
  EXPECT_EQ(description["compute_dtype"], "bfloat16");
  EXPECT_EQ(description["emulate"], true);
  EXPECT_EQ(description["gemm"], "onednn");
  EXPECT_EQ(description["layers"], 2);
  EXPECT_EQ(description["layer"]["heads"], 4);
  EXPECT_EQ(description["layer"]["norm_epsilon"], 1e-12);
  EXPECT_EQ(description["embeddings"]["longest_sequence"], 64);
  EXPECT_EQ(description["pooling"]["modes"], json({"mean"}));
  EXPECT_EQ(description["pooling"]["normalize"], true);
  const json& memory = document["memory"];
  EXPECT_GT(memory["weights"]["f32"]["bytes"], memory["weights"]["int8"]["bytes"]);
  EXPECT_EQ(memory["weights"]["f32"]["refusal"], nullptr);
  EXPECT_EQ(memory["activations"]["threads"], 2);
  EXPECT_EQ(memory["limit"]["reason"], "of the test");
  EXPECT_GT(memory["server"]["requests"], 2 * settings.max_request_tokens * 32 * 4);
  EXPECT_GT(memory["server"]["transport"], 64 << 20);
  EXPECT_EQ(memory["server"]["weight_copies"], 1);
  EXPECT_EQ(description["stage_costs"][0]["stage"], "attention.qkv");
  EXPECT_EQ(description["stage_costs"][0]["flops_per_token"], 2 * 2 * 32 * 96);
  EXPECT_EQ(description["stage_costs"][1]["flops_per_pair"], 2 * 2 * 32);
  EXPECT_EQ(document["weights"][0]["name"], "embeddings.word");
  EXPECT_EQ(document["weights"][0]["form"], "table");
  EXPECT_EQ(document["tensors"], json::array());
  EXPECT_FALSE(document.contains("query_key_ranks"));
}

TEST(ReportJsonTest, HoldsRanksIfAskedFor) {
  Settings settings;
  settings.models = {*ParseModelSource("synthetic:tiny")};
  const json document =
      json::parse(ToJson(InspectModel(settings, ThreadPlan{}, MemoryLimit{}, /*ranks=*/true)));
  ASSERT_EQ(document["query_key_ranks"].size(), 2u);
  EXPECT_EQ(document["query_key_ranks"][0]["heads"].size(), 4u);
  EXPECT_GT(document["query_key_ranks"][0]["concatenated"], 8);
}

TEST(ReportJsonTest, SaysWhyThereAreNoRanks) {
  Settings settings;
  settings.models = {*ParseModelSource("synthetic:tiny")};
  ModelReport report = InspectModel(settings, ThreadPlan{}, MemoryLimit{});
  report.no_ranks = "too wide";
  const json document = json::parse(ToJson(report));
  EXPECT_EQ(document["no_query_key_ranks"], "too wide");
  EXPECT_FALSE(document.contains("query_key_ranks"));
}

TEST(ReportJsonTest, HoldsFrontsWindowsAndHeads) {
  ModelReport report;
  report.model.setting = *ParseModelSource("/m");
  ModelDescription& model = report.model.checkpoint.description;
  model.layers = 2;
  model.layer.hidden_size = 4;
  model.layer.attention.window = 8;
  model.layer.attention.pattern = {
      .block = 64, .first_global = 1, .last_global = 2, .full_up_to = 700};
  model.layer.attention.pattern.listed = BlockLists({{3, 0}, {2, 7}}, {5});
  model.layer.attention.heads = 3;
  model.layer.feed_forward = {.width = 8, .mixture = {.experts = 6, .per_token = 2}};
  model.layer_shapes = {model.layer, WithoutHeads(model.layer, {1})};
  model.layer_shapes[0].feed_forward.mixture = {};
  model.layer_shapes[0].attention.window = 0;
  model.patch_embedding = {.registers = 2};
  model.classifier = {.modes = {PoolingMode::kMean}, .dense_width = 3};
  const json description = json::parse(ToJson(report))["description"];
  EXPECT_EQ(description["layer"]["window"], 8);
  EXPECT_EQ(description["layer"]["window_block"], 64);
  EXPECT_EQ(description["layer"]["attention"], "softmax");
  EXPECT_EQ(description["layer"]["bottleneck"], 0);
  EXPECT_EQ(description["layer"]["feed_forwards"], 1);
  EXPECT_EQ(description["layer"]["convolution"]["taps"], 0);
  EXPECT_EQ(description["layer"]["experts"], 6);
  EXPECT_EQ(description["layer"]["experts_per_token"], 2);
  EXPECT_EQ(description["expert_layers"], json({1}));
  EXPECT_EQ(description["layer"]["first_global_blocks"], 1);
  EXPECT_EQ(description["layer"]["last_global_blocks"], 2);
  EXPECT_EQ(description["layer"]["full_attention_up_to"], 700);
  EXPECT_EQ(description["block_pairs"].dump(), "[[2,7],[3,0]]");
  EXPECT_EQ(description["global_blocks"].dump(), "[5]");
  EXPECT_EQ(description["windowed_layers"], json({1}));
  EXPECT_EQ(description["pruned_layers"].dump(), R"([{"heads":[0,2],"layer":1}])");
  EXPECT_EQ(description["front"]["own_rows"], 2);
  EXPECT_EQ(description["classifier"]["width"], 3);
}

TEST(ReportJsonTest, SurvivesNamesThatAreNoText) {
  ModelReport report;
  report.model.setting = *ParseModelSource("/m");
  report.refusals = {"refused"};
  report.model.checkpoint.tensors = {{"/m/w", "a\xff\"", "F32", {2}, 8, {"layer.0.query.weight"}}};
  const json document = json::parse(ToJson(report));
  EXPECT_EQ(document["served"], false);
  EXPECT_EQ(document["description"], nullptr);
  EXPECT_FALSE(document.contains("memory"));
  EXPECT_EQ(document["tensors"][0]["name"], "a\xef\xbf\xbd\"");
  EXPECT_EQ(document["tensors"][0]["weights"], json({"layer.0.query.weight"}));
}

}  // namespace report_json_test
}  // namespace attendant::server
