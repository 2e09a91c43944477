// DescribedFolderTest, a fixture for folders with an attendant.json that describes their tensors.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"

namespace attendant {

class DescribedFolderTest : public ::testing::Test {
 protected:
  using Tensors = std::vector<TestTensor>;

  // Opens a folder with the description and with m.safetensors, the file that descriptions name.
  absl::StatusOr<Checkpoint> Open(const Json& description, const Tensors& tensors) {
    folder_.Write("attendant.json", description.dump());
    folder_.Write("m.safetensors", MakeSafetensors(tensors));
    return OpenCheckpoint(folder_.path(), {});
  }

  // As Open, into checkpoint_. Fails the test on an error.
  void Load(const Json& description, const Tensors& tensors) {
    absl::StatusOr<Checkpoint> opened = Open(description, tensors);
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
  }

  // Returns the message with which the folder is refused.
  std::string Refusal(const Json& description, const Tensors& tensors) {
    const absl::Status status = Open(description, tensors).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
  Checkpoint checkpoint_;
};

}  // namespace attendant
