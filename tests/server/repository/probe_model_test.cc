#include "server/repository/probe_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/checkpoint.h"
#include "server/execution/prepare_model.h"
#include "tests/server/support/test_server.h"

namespace attendant::server {
namespace probe_model_test {

std::shared_ptr<const ServedModel> Prepared(const ServedModel& model, int64_t max_tokens) {
  return PrepareModel(model, nullptr, max_tokens, {1, 2}, RealClock());
}

TEST(ProbeModelTest, AcceptsAllKindsOfModels) {
  for (const auto& [name, model] : TestModels()) {
    for (const int64_t max_tokens : {1, 5, 64}) {
      const absl::Status status = ProbeModel(*Prepared(*model, max_tokens));
      EXPECT_TRUE(status.ok()) << name << ": " << status;
    }
  }
}

TEST(ProbeModelTest, RefusesOtherBits) {
  ServedModel model = *Prepared(*TestModels().at("tiny"), 64);
  const absl::StatusOr<Checkpoint> other = OpenCheckpoint("synthetic:tiny@2", {});
  // The run on one thread computes with these weights, the run on all with those before.
  model.encoder = *Encoder::Load(other->description, *other->weights, [](int64_t, int64_t) {});
  const absl::Status status = ProbeModel(model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "layer 0 of 2 returns different bits when computed on one thread");
}

}  // namespace probe_model_test
}  // namespace attendant::server
