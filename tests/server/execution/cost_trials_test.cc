// Tests of the runs that are timed for cost models.
#include <gtest/gtest.h>

#include "engine/layers/encoder.h"
#include "server/execution/prepare_model.h"
#include "tests/server/support/service_parts.h"

namespace attendant::server {
namespace cost_trials_test {

class CostTrialsTest : public testing::Test {
 protected:
  static ServedModel Fresh(const std::string& name, const std::string& of) {
    return ServedModel(name, TestModels().at(of)->encoder);
  }
  void Time(const ServedModel& model, int64_t max_tokens = 600, const ServedModel* base = nullptr) {
    EncoderRun run(model.encoder, max_tokens, 2);
    TimeCosts(model, base, run, clock_);
  }

  SteppingClock clock_{absl::Microseconds(1)};
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
  const ServedModel base = Fresh("tiny", "tiny"), overlay = Fresh("overlay", "tiny");
  Time(base);
  const int64_t asked = clock_.asked();
  Time(overlay, 600, &base);
  EXPECT_EQ(clock_.asked(), asked);
  EXPECT_EQ(base.cost->rates(), overlay.cost->rates());
}

}  // namespace cost_trials_test
}  // namespace attendant::server
