#include "server/describe/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/kernels/gemm/compute_support.h"
#include "server/settings/model_setting.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant::server {
namespace model_report_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kGiB = int64_t{1} << 30;

Settings SettingsFor(const std::string& source) {
  Settings settings;
  settings.models = {*ParseModelSource(source)};
  settings.models[0].name = settings.models[0].source;
  return settings;
}

ModelReport Inspect(const Settings& settings, int64_t limit = 1024 * kGiB) {
  return InspectModel(settings, ThreadPlan{.instances = 2, .threads_per_instance = 1},
                      MemoryLimit{limit, "of the test"});
}

void WriteBert(const TempFolder& folder, const std::vector<TestTensor>& tensors) {
  folder.Write("config.json", TinyBertConfig());
  folder.Write("model.safetensors", MakeSafetensors(tensors));
}

TEST(InspectModelTest, AccountsForAModelThatWouldBeServed) {
  const Settings settings = SettingsFor("synthetic:tiny");
  const ModelReport report = Inspect(settings);
  EXPECT_THAT(report.refusals, IsEmpty());
  EXPECT_EQ(report.model.checkpoint.description.layers, 2);
  EXPECT_THAT(report.weights, SizeIs(2 * 16 + 5));
  ASSERT_THAT(report.weight_memory, SizeIs(std::size(kComputeTypes)));
  EXPECT_EQ(report.weight_memory[0].refusal, "");
  for (const WeightMemory& memory : report.weight_memory) {
    const bool takes_less = AttendsInBf16(memory.type);
    EXPECT_EQ(memory.bytes < report.weight_memory[0].bytes, takes_less) << Name(memory.type);
  }
  EXPECT_EQ(report.run_tokens, settings.max_request_tokens);
  ASSERT_TRUE(report.need.has_value());
  EXPECT_EQ(report.need->activations, 2 * report.run_bytes);
  EXPECT_EQ(report.need->requests,
            2 * *LargestRequestBytes({&report.model, 1}, settings.max_request_tokens));
  EXPECT_GT(Describe(report).stage_costs_size(), 0);
}

TEST(InspectModelTest, SaysWhatThisCpuCannotCompute) {
  for (const size_t i : {1, 2}) {
    const ComputeType type = kComputeTypes[i];
    const ModelReport report =
        Inspect(SettingsFor(std::string("synthetic:tiny,dtype=") + Name(type)));
    const absl::Status support = CheckComputeMode({.type = type});
    EXPECT_EQ(report.weight_memory[i].refusal, std::string(support.message()));
    if (support.ok()) {
      EXPECT_THAT(report.refusals, IsEmpty());
      EXPECT_TRUE(report.need.has_value());
    } else {
      EXPECT_THAT(report.refusals, ElementsAre(std::string(support.message())));
      EXPECT_FALSE(report.need.has_value());
    }
  }
}

TEST(InspectModelTest, NamesEveryProblemOfTheFilesAndTheSettings) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = TinyBertTensors();
  tensors.pop_back();
  tensors.push_back(MakeTensor("encoder.surprise", {1}));
  WriteBert(folder, tensors);
  const ModelReport report = Inspect(SettingsFor(folder.path()), kGiB / 16);
  EXPECT_THAT(
      report.refusals,
      ElementsAre(HasSubstr("missing; expected "), HasSubstr("encoder.surprise"),
                  AllOf(StartsWith("needs "), HasSubstr("the limit of the test is 64.0 MiB"))));
  EXPECT_EQ(report.model.checkpoint.tensors.size(), tensors.size());
  EXPECT_FALSE(report.weights.empty());
}

TEST(InspectModelTest, ReadsTheValues) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = TinyBertTensors();
  for (TestTensor& tensor : tensors) {
    if (tensor.name != "embeddings.LayerNorm.bias") continue;
    tensor.bytes = Encode({0, 1, std::numeric_limits<float>::infinity(), 3}, "F32");
  }
  WriteBert(folder, tensors);
  EXPECT_THAT(Inspect(SettingsFor(folder.path())).refusals,
              ElementsAre(AllOf(HasSubstr("embeddings.LayerNorm.bias"),
                                HasSubstr("got inf at element 2"))));
  EXPECT_THAT(Inspect(SettingsFor(folder.path() + ",allow-nonfinite-weights=true")).refusals,
              IsEmpty());
}

TEST(InspectModelTest, ChecksTheDigest) {
  const TempFolder folder;
  WriteBert(folder, TinyBertTensors());
  const std::string zeros(64, '0');
  EXPECT_THAT(Inspect(SettingsFor(absl::StrCat(folder.path(), ",weights-sha256=", zeros))).refusals,
              ElementsAre(HasSubstr("expected SHA-256")));
}

TEST(InspectModelTest, KnowsNothingOfWhatIsNotThere) {
  const ModelReport report = Inspect(SettingsFor("/nowhere/model"));
  EXPECT_THAT(report.refusals,
              ElementsAre(StartsWith("/nowhere/model: not a directory, worked-example or ")));
  EXPECT_EQ(report.model.checkpoint.description.layers, 0);
  EXPECT_THAT(report.weights, IsEmpty());
}

TEST(InspectModelTest, RefusesMoreTokensThanAMessageHolds) {
  Settings settings = SettingsFor("synthetic:bert-base");
  settings.max_request_tokens = 1 << 20;
  EXPECT_THAT(Inspect(settings).refusals,
              ElementsAre(HasSubstr("1048576 rows of 768 float32 do not fit into a message")));
}

}  // namespace model_report_test
}  // namespace attendant::server
