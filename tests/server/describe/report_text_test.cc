#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "engine/kernels/isa.h"
#include "engine/model/pruned_heads.h"
#include "server/describe/model_report.h"
#include "server/settings/model_setting.h"

namespace attendant::server {
namespace report_text_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A model of one layer, E 4, with one head, and a file that has a tensor of three weights and an
// unused one.
ModelReport SmallReport() {
  ModelReport report;
  report.model.setting = *ParseModelSource("/m,dtype=int8");
  Checkpoint& found = report.model.checkpoint;
  ModelDescription& model = found.description;
  model.family = "a family";
  model.layers = 1;
  model.layer.hidden_size = 4;
  model.layer.attention.heads = 1;
  model.layer.attention.key_width = model.layer.attention.value_width = 4;
  model.layer.attention.score_scale = 0.5f;
  found.tensors = {{"/m/w",
                    "in_proj",
                    "F16",
                    {12, 4},
                    96,
                    {"layer.0.query.weight", "layer.0.key.weight", "layer.0.value.weight"}},
                   {"/m/w", "odd\nname", "I64", {1}, 8, {}}};
  found.warnings = {"a warning"};
  report.weights = ListWeightUses(model);
  report.weight_memory = {{ComputeType::kF32, 1 << 20, ""},
                          {ComputeType::kInt8, 1 << 18, "no units"}};
  report.run_tokens = 64;
  report.run_bytes = 3 << 20;
  report.plan.instances = 2;
  report.plan.threads_per_instance = 3;
  return report;
}

std::vector<std::string> Lines(const ModelReport& report) {
  return absl::StrSplit(ToText(report), '\n');
}

TEST(ReportTextTest, DescribesTheModel) {
  const std::vector<std::string> lines = Lines(SmallReport());
  EXPECT_THAT(lines, Contains("source              /m"));
  EXPECT_THAT(lines, Contains("family              a family"));
  EXPECT_THAT(lines,
              Contains("heads               1, keys 4 and values 4 wide; scores scaled by 0.5"));
  EXPECT_THAT(lines, Contains("feed-forward        none"));
  EXPECT_THAT(lines, Contains("embeddings          none: takes hidden states"));
}

TEST(ReportTextTest, DescribesFrontsWindowsAndHeads) {
  ModelReport report = SmallReport();
  ModelDescription& model = report.model.checkpoint.description;
  EXPECT_THAT(ToText(report), Not(HasSubstr("\nwindow ")));
  EXPECT_THAT(ToText(report), Not(HasSubstr("\nfeatures ")));
  EXPECT_THAT(ToText(report), Not(HasSubstr("\nclassifier ")));
  model.layer.attention.window = 64;
  model.patch_embedding = {.has_class = true, .positions = 10, .needs_every = true};
  model.classifier = {.modes = {PoolingMode::kFirstToken}, .dense_width = 3};
  const std::vector<std::string> lines = Lines(report);
  EXPECT_THAT(lines, Contains("window              64 tokens on either side, in 1 layers"));
  EXPECT_THAT(lines, Contains("features            of width 4; 1 prefix tokens; 9"));
  model.layer.attention.pattern = {
      .block = 16, .first_global = 1, .last_global = 2, .full_up_to = 70};
  const std::vector<std::string> in_blocks = Lines(report);
  EXPECT_THAT(in_blocks,
              Contains("window              64 blocks of 16 tokens on either side, in 1 layers"));
  EXPECT_THAT(in_blocks,
              Contains("global              the first 1 and the last 2 blocks of 16 tokens"));
  EXPECT_THAT(in_blocks, Contains("no window           up to 70 tokens"));
  EXPECT_THAT(ToText(report), Not(HasSubstr("\nlisted ")));
  model.layer.attention.pattern.listed = BlockLists({{2, 7}, {3, 0}}, {5});
  const std::vector<std::string> listed = Lines(report);
  EXPECT_THAT(listed, Contains("listed pairs        2 of blocks of 16 tokens"));
  EXPECT_THAT(listed, Contains("listed global       1 blocks of 16 tokens"));
  model.layer.attention.kind = AttentionKind::kAdditive;
  model.layer.extras.bottleneck.width = 24;
  model.layer.feed_forward.blocks = 4;
  model.layer.extras.convolution = {.taps = 3, .groups = 2};
  const std::vector<std::string> inside = Lines(report);
  EXPECT_THAT(inside, Contains("attention           additive"));
  EXPECT_THAT(inside, Contains("bottleneck          24 wide around all blocks"));
  EXPECT_THAT(inside, Contains("feed-forward blocks 4"));
  EXPECT_THAT(inside, Contains("convolution         over 3 tokens, tanh, 2 groups, in 1 layer"));
  EXPECT_THAT(lines, Contains("classifier          3 classes"));
}

TEST(ReportTextTest, NamesTheHeadsThatPruningLeaves) {
  ModelReport report = SmallReport();
  ModelDescription& model = report.model.checkpoint.description;
  EXPECT_THAT(ToText(report), Not(HasSubstr("heads of layer")));
  model.layers = 3;
  model.layer.attention.heads = 4;
  model.layer_shapes = {WithoutHeads(model.layer, {1}), model.layer,
                        WithoutHeads(model.layer, {0, 1, 2, 3})};
  const std::vector<std::string> lines = Lines(report);
  EXPECT_THAT(lines, Contains("heads of layer 0    0 2 3"));
  EXPECT_THAT(lines, Contains("heads of layer 2    none left"));
  EXPECT_THAT(ToText(report), Not(HasSubstr("heads of layer 1")));
}

TEST(ReportTextTest, AddsUpMemoryAndCost) {
  ModelReport report = SmallReport();
  const std::vector<std::string> lines = Lines(report);
  EXPECT_THAT(lines, Contains("weights in f32      1.0 MiB"));
  EXPECT_THAT(lines, Contains("weights in int8     0.2 MiB; not here: no units"));
  EXPECT_THAT(
      lines,
      Contains("activations         3.0 MiB for 64 tokens on 3 threads, in each of 2 instances"));
  EXPECT_THAT(ToText(report), Not(HasSubstr("\nmemory ")));
  EXPECT_THAT(lines, Contains("FLOPs               128 per token, 16 per pair of query and key"));
  EXPECT_THAT(lines, Contains("  attention.qkv     96 per token"));
  // 128 * 128 + 16 * 128^2 = 278528.
  EXPECT_THAT(lines,
              Contains("  a sequence of 128 tokens: 0.000 GFLOP, 94.1 % of it scores and context"));
  report.need = MemoryNeed{.weights = 1 << 20, .requests = 2 << 20};
  report.limit = {8 << 20, "of the test"};
  EXPECT_THAT(Lines(report), Contains("memory              3.0 MiB of 8.0 MiB of the test: loading "
                                      "1.0 MiB, activations 0.0 MiB, requests at least 2.0 MiB, "
                                      "gRPC 0.0 MiB"));
  report.need->cache = 1 << 20;
  EXPECT_THAT(ToText(report), HasSubstr(" 4.0 MiB of 8.0 MiB of the test: loading 1.0 MiB, "));
  EXPECT_THAT(ToText(report), HasSubstr(", gRPC 0.0 MiB, cache 1.0 MiB"));
  report.need->cache = 0;
  report.plan.nodes = {{0, {0}}, {1, {1}}};
  report.plan.copy_of_instance = {0, 1};
  EXPECT_THAT(ToText(report), HasSubstr("loading 1.0 MiB in 2 copies, activations"));
  report.model.checkpoint.description.layer.attention.key_input_width = 7;
  EXPECT_THAT(Lines(report),
              Contains("memory              required: keys from 7 columns, values from 4"));
}

TEST(ReportTextTest, ShowsRanksIfThereAreAny) {
  ModelReport report = SmallReport();
  EXPECT_THAT(ToText(report), Not(HasSubstr("Singular")));
  report.ranks = {{{3, 2}, 4}};
  EXPECT_THAT(Lines(report), Contains("Singular values that hold 90 % of W_Q^T W_K: for each head, "
                                      "out of 4; for all heads together, out of 4"));
  EXPECT_THAT(Lines(report), Contains("  weight set 0: 3 2; together 4"));
  report.ranks.clear();
  report.no_ranks = "too wide";
  EXPECT_THAT(Lines(report), Contains("  none: too wide"));
}

TEST(ReportTextTest, SaysWhereEveryTensorWent) {
  const std::vector<std::string> lines = Lines(SmallReport());
  EXPECT_THAT(lines, Contains("  /m/w"));
  EXPECT_THAT(lines,
              Contains("    in_proj F16 [12, 4] -> linear layer layer.0.qkv, rows 0 to 3, int8; "
                       "linear layer layer.0.qkv, rows 4 to 7, int8; linear layer layer.0.qkv, "
                       "rows 8 to 11, int8"));
  EXPECT_THAT(lines, Contains("    odd\\nname I64 [1] -> not used"));
}

TEST(ReportTextTest, SaysWhatCollaborativeHeadsAreMadeOf) {
  ModelReport report = SmallReport();
  report.model.checkpoint.tensors = {{"/m/w", "mixing", "F32", {1, 4}, 16, {"layer.0.mixing"}}};
  EXPECT_THAT(Lines(report), Contains("    mixing F32 [1, 4] -> made into queries and keys"));
}

TEST(ReportTextTest, TellsWhatIsKeptOfSequencesInParts) {
  ModelReport report = SmallReport();
  EXPECT_THAT(ToText(report), Not(HasSubstr("sequences in chunks")));
  report.model.checkpoint.description.layer.attention.kind = AttentionKind::kCausalLinear;
  EXPECT_THAT(Lines(report),
              Contains("sequences in chunks over EncodeStream, 1024 bytes of state each"));
}

TEST(ReportTextTest, TellsEmulationFromTheTypesOwnMemory) {
  ModelReport report = SmallReport();
  report.model.setting.compute.emulate = true;
  EXPECT_THAT(ToText(report), HasSubstr("rows 0 to 3, int8 held in f32;"));
  EXPECT_THAT(Lines(report), Contains("compute type        int8, emulated; ISA " + EffectiveIsa()));
}

TEST(ReportTextTest, TellsInWhatWeightsAreKept) {
  ModelReport report = SmallReport();
  report.model.setting.compute = {};
  EXPECT_THAT(ToText(report), HasSubstr("rows 0 to 3, f32;"));
  report.model.checkpoint.description.linear_type = DataType::kBFloat16;
  EXPECT_THAT(ToText(report), HasSubstr("rows 0 to 3, f32 held in bf16;"));
  report.model.setting.compute.weights = WeightType::kF16;
  EXPECT_THAT(ToText(report), HasSubstr("rows 0 to 3, f32 held in f16;"));
  EXPECT_THAT(Lines(report), Contains("weight type         f16"));
  report.model.setting.compute = {.gemm = Gemm::kOneDnn};
  EXPECT_THAT(ToText(report), HasSubstr("rows 0 to 3, f32;"));
}

TEST(ReportTextTest, TellsWhoseProductsWereAskedFor) {
  ModelReport report = SmallReport();
  report.model.setting.compute.gemm = Gemm::kOneDnn;
  EXPECT_THAT(Lines(report), Contains("compute type        int8; ISA " + EffectiveIsa()));
  EXPECT_THAT(Lines(report), Contains("matrix products     onednn"));
}

TEST(ReportTextTest, ListsTheWeightsOfAModelWithoutFiles) {
  ModelReport report = SmallReport();
  report.model.checkpoint.tensors.clear();
  const std::vector<std::string> lines = Lines(report);
  EXPECT_THAT(lines, Contains("Weights without a file"));
  EXPECT_THAT(lines, Contains("    layer.0.output.bias [4] -> bias of layer.0.output from 0, f32"));
  EXPECT_THAT(lines, Contains("    layer.0.attention_norm.weight [4] -> norm "
                              "layer.0.attention_norm.weight, f32"));
}

TEST(ReportTextTest, BeginsWithTheReasonsAndEndsWithTheVerdict) {
  ModelReport report = SmallReport();
  EXPECT_THAT(ToText(report), EndsWith("\nwarning: a warning\nThis server would serve it.\n"));
  report.refusals = {"first", "second"};
  EXPECT_THAT(ToText(report),
              AllOf(StartsWith("source              /m\nrefused: first\nrefused: second\n"),
                    EndsWith("\nwarning: a warning\nThis server would refuse it.\n"),
                    HasSubstr("\nTensors of the files\n")));
  report.model.checkpoint.tensors.clear();
  EXPECT_THAT(ToText(report), Not(HasSubstr("Weights without a file")));
}

TEST(ReportTextTest, IsShortWhenNothingIsKnown) {
  ModelReport report;
  report.model.setting = *ParseModelSource("/nowhere");
  report.refusals = {"nothing there"};
  EXPECT_EQ(
      ToText(report),
      "source              /nowhere\nrefused: nothing there\n\nThis server would refuse it.\n");
}

}  // namespace report_text_test
}  // namespace attendant::server
