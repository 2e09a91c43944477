// Tests of the runs that are timed for cost models.
#include "server/execution/cost_trials.h"

#include <gtest/gtest.h>

#include "engine/layers/encoder.h"
#include "tests/server/support/service_parts.h"

namespace attendant::server {
namespace {

class CostTrialsTest : public testing::Test {
 protected:
  static ServedModel Fresh(const std::string& name, const std::string& of) {
    return ServedModel(name, TestModels().at(of)->encoder);
  }
  void Time(const ServedModel& model, int64_t max_tokens = 600) {
    EncoderRun run(model.encoder, max_tokens, 2);
    TimeCosts(model, models_, run, clock_);
  }

  SteppingClock clock_{absl::Microseconds(1)};
  ServedModels models_;
};

TEST_F(CostTrialsTest, TimesAnyModelOnce) {
  for (const auto& [name, served] : TestModels()) {
    for (const int64_t max_tokens : {1, 5, 600}) {
      const ServedModel fresh = Fresh(name, name);
      Time(fresh, max_tokens);
      EXPECT_TRUE(fresh.cost->has_rates()) << name;
      EXPECT_GT(fresh.cost->rates().product_flops, 0) << name;
      EXPECT_GT(fresh.cost->rates().attention_flops, 0) << name;
      const int64_t asked = clock_.asked();
      Time(fresh, max_tokens);
      EXPECT_EQ(clock_.asked(), asked);
    }
  }
  EXPECT_GT(clock_.asked(), 0);
}

TEST_F(CostTrialsTest, AnOverlayTakesTheRatesOfItsBase) {
  const auto base = std::make_shared<ServedModel>(Fresh("tiny", "tiny"));
  models_["tiny"] = base;
  ServedModel overlay = Fresh("overlay", "tiny");
  overlay.base = "tiny";
  Time(overlay);
  EXPECT_TRUE(base->cost->has_rates());
  EXPECT_EQ(base->cost->rates(), overlay.cost->rates());
}

}  // namespace
}  // namespace attendant::server
