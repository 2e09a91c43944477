#include "server/repository/version_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant::server {
namespace version_loader_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class VersionLoaderTest : public testing::Test {
 protected:
  VersionLoaderTest() {
    folder_.Write("m/1/config.json", TinyBertConfig());
    folder_.Write("m/1/model.safetensors", MakeSafetensors(TinyBertTensors()));
    settings_.max_request_tokens = settings_.max_batch_tokens = 64;
    settings_.model_repository = folder_.path();
    need_ = *PredictMemory({}, settings_, plan_);
  }

  std::unique_ptr<VersionLoader> Loader() {
    return std::make_unique<VersionLoader>(
        LoaderOptions{settings_, plan_, limit_, need_, RealClock(), [this](int64_t bytes) {
                        if (bytes < held_) return false;
                        budgets_.push_back(bytes);
                        return true;
                      }});
  }
  absl::StatusOr<std::shared_ptr<const ServedModel>> Load(VersionLoader& loader) {
    return loader.Load("m", {1, folder_.File("m/1"), ""});
  }

  TempFolder folder_;
  Settings settings_;
  const ThreadPlan plan_ = {1, 1};
  MemoryLimit limit_ = {int64_t{256} << 20, "of the test"};
  MemoryNeed need_;
  int64_t held_ = 0;  // by requests
  std::vector<int64_t> budgets_;
};

TEST_F(VersionLoaderTest, ReturnsAModelThatCanBeServed) {
  const auto model = Load(*Loader());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->name, "m");
  EXPECT_EQ((*model)->version, 1);
  EXPECT_THAT(*(*model)->runs, SizeIs(1));
  EXPECT_TRUE((*model)->cost->has_rates());
}

TEST_F(VersionLoaderTest, AFileOfTheVersionHasItsOptions) {
  folder_.Write("m/1/attendant.options", "dtype=int8,emulate=true,prune=heads.json\n");
  folder_.Write("m/1/heads.json", R"({"0": [1]})");
  const auto model = Load(*Loader());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->encoder->mode().type, ComputeType::kInt8);
  EXPECT_EQ((*model)->encoder->description().heads_at(0),
            (*model)->encoder->description().heads_at(1) - 1);
  folder_.Write("m/1/attendant.options", "adapter=lora");
  EXPECT_EQ(Load(*Loader()).status().message(),
            folder_.File("m/1/lora/adapter_config.json") + ": no such file");
  folder_.Write("m/1/attendant.options", "pooling=max");
  EXPECT_EQ((*Load(*Loader()))->encoder->description().pooling,
            (PoolingDescription{.modes = {PoolingMode::kMax}}));
  folder_.Write("m/1/attendant.options", "");
  EXPECT_TRUE(Load(*Loader()).ok());
}

TEST_F(VersionLoaderTest, RefusesOtherOptionsThanThoseOfAModel) {
  for (const auto& [options, problem] : std::vector<std::pair<std::string, std::string>>{
           {"dtype=f64", "expected f32, bf16x3, bf16 or int8 for dtype; got \"f64\""},
           {"dtype", "for dtype; got \"\""},
           {"overlay=x", "overlay: not supported in a model repository"},
           {"prune=/secret/heads.json",
            "prune: expected a file in the same directory; got an absolute path"},
           {"adapter=/secret",
            "adapter: expected a directory in the same directory; got an absolute path"},
           {"emulate=true", "a dtype other than f32"},
           {std::string(5000, ' '), "attendant.options"}}) {
    folder_.Write("m/1/attendant.options", options);
    const auto model = Load(*Loader());
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << options;
    EXPECT_THAT(model.status().message(), AllOf(HasSubstr("attendant.options"), HasSubstr(problem),
                                                Not(HasSubstr("secret"))));
  }
  EXPECT_THAT(budgets_, IsEmpty());
}

TEST_F(VersionLoaderTest, RequestsGetTheMemoryOfVersionsThatAreGone) {
  const auto loader = Loader();
  auto first = Load(*loader), second = Load(*loader);
  ASSERT_TRUE(first.ok() && second.ok());
  loader->CollectFreed();
  ASSERT_THAT(budgets_, SizeIs(2));
  EXPECT_LT(budgets_[1], budgets_[0]);
  first->reset();
  loader->CollectFreed();
  ASSERT_THAT(budgets_, SizeIs(3));
  EXPECT_EQ(budgets_[2], budgets_[0]);
  loader->CollectFreed();
  EXPECT_THAT(budgets_, SizeIs(3));
}

TEST_F(VersionLoaderTest, RefusesWhatLeavesTooLittleForRequests) {
  limit_.bytes = need_.total() + 1000;
  const auto model = Load(*Loader());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(model.status().message(),
              AllOf(HasSubstr("needs "), HasSubstr(" of memory, but 0.0 MiB is available"),
                    HasSubstr("the limit of the test is ")));
  EXPECT_THAT(budgets_, IsEmpty());
}

TEST_F(VersionLoaderTest, RefusesWhatRequestsHoldTheMemoryOf) {
  held_ = RequestBudget(need_, limit_);
  const auto loader = Loader();
  const auto model = Load(*loader);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(model.status().message(),
              AllOf(HasSubstr("needs "), HasSubstr(" for requests, which currently use more")));
  EXPECT_THAT(budgets_, IsEmpty());
  held_ = 0;
  EXPECT_TRUE(Load(*loader).ok());
}

TEST_F(VersionLoaderTest, LoadsNothingOnceItIsStopped) {
  const auto loader = Loader();
  loader->Stop();
  EXPECT_EQ(Load(*loader).status().code(), absl::StatusCode::kCancelled);
  ASSERT_THAT(budgets_, SizeIs(2));
  EXPECT_GT(budgets_[1], budgets_[0]);
}

TEST_F(VersionLoaderTest, RefusesRequestsThatTheServerCannotReceive) {
  need_.requests = 2000;
  const auto model = Load(*Loader());
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(model.status().message(), HasSubstr("but the server receives at most 1000, which "
                                                  "--repository-width fixed at startup"));
}

TEST_F(VersionLoaderTest, AVersionThatCannotBeReadLeavesTheMemoryAsItWas) {
  folder_.Write("m/1/model.safetensors", MakeSafetensors({MakeTensor("other", {4})}));
  EXPECT_EQ(Load(*Loader()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(budgets_, IsEmpty());
  // One that is found out only when its values are read.
  std::vector<TestTensor> tensors = TinyBertTensors();
  for (TestTensor& tensor : tensors) {
    tensor.bytes = std::string(tensor.bytes.size(), '\xff');  // NaN
  }
  folder_.Write("m/1/model.safetensors", MakeSafetensors(tensors));
  EXPECT_FALSE(Load(*Loader()).ok());
  ASSERT_THAT(budgets_, SizeIs(2));
  EXPECT_GT(budgets_[1], budgets_[0]);
}

}  // namespace version_loader_test
}  // namespace attendant::server
