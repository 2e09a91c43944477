// A fixture for folders whose attendant.json says what their tensors are.
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

  // The file that descriptions name is m.safetensors.
  absl::StatusOr<Checkpoint> Open(const Json& description, const Tensors& tensors) {
    folder_.Write("attendant.json", description.dump());
    folder_.Write("m.safetensors", MakeSafetensors(tensors));
    return OpenCheckpoint(folder_.path(), {});
  }

  void Load(const Json& description, const Tensors& tensors) {
    absl::StatusOr<Checkpoint> opened = Open(description, tensors);
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
  }

  std::string Refusal(const Json& description, const Tensors& tensors) {
    const absl::Status status = Open(description, tensors).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  TempFolder folder_;
  Checkpoint checkpoint_;
};

}  // namespace attendant
