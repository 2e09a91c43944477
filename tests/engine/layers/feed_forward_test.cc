#include "engine/layers/feed_forward.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/layers/state/rows.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/test_vectors.h"

namespace attendant::test_support {
namespace feed_forward_test {

// TV21: erf GeGLU of four rows with twelve rows of weights, with the gate before or after the
// product that it multiplies.
void ExpectGated(bool gate_first, const std::vector<double>& first_row, double sum,
                 double sum_of_squares) {
  ModelDescription model = SmallModel(1, 2, 2);
  model.layer.feed_forward.has_gate = true;
  model.layer.feed_forward.width = 6;
  const std::vector<float> both = Generate(48, 8);
  const std::vector<float> first(both.begin(), both.begin() + 24);
  const std::vector<float> second(both.begin() + 24, both.end());
  MemoryWeights weights({{"feed_forward_gate.weight", gate_first ? first : second},
                         {"feed_forward_in.weight", gate_first ? second : first},
                         {"feed_forward_out.weight", Generate(24, 9)}});
  WeightLoader loader(weights, 0, [](int64_t, int64_t) {});
  const FeedForward block("", model.layer, loader);
  ASSERT_TRUE(loader.status().ok()) << loader.status();

  Workspace workspace(model, 16, 1);
  workspace.Reserve(loader.product_uses());
  const PositionTables tables(model, 16);
  const LayerRun run = {.workspace = workspace, .tables = tables, .tokens = 4};
  const MatrixView<float> x = run.Kept(workspace.activations.hidden());
  const std::vector<float> values = Generate(16, 1);
  std::copy(values.begin(), values.end(), x.data);
  const MatrixView<float> y = block.Forward(x, run);
  for (size_t j = 0; j < first_row.size(); ++j) {
    EXPECT_NEAR(y.row(0)[j], first_row[j], kTestVectorTolerance);
  }
  double found = 0, found_of_squares = 0;
  for (int64_t i = 0; i < 16; ++i) {
    found += y.data[i];
    found_of_squares += y.data[i] * y.data[i];
  }
  EXPECT_NEAR(found, sum, 16 * kTestVectorTolerance);
  EXPECT_NEAR(found_of_squares, sum_of_squares, 16 * kTestVectorTolerance);
}

TEST(FeedForwardTest, TV21GateFirst) {
  ExpectGated(true, {.04395175, -.48969223, -.30972685, -.09631702}, -4.76786261, 4.66464326);
}

TEST(FeedForwardTest, TV21UpFirst) {
  ExpectGated(false, {-.22688804, -.30161486, -.18836655, -.02106831}, -4.53817413, 4.82224374);
}

}  // namespace feed_forward_test
}  // namespace attendant::test_support
