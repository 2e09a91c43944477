#include "engine/layers/state/position_tables.h"

#include <gtest/gtest.h>

#include "tests/support/engine_calls.h"

namespace attendant::test_support {
namespace position_tables_test {

ModelDescription RotaryModel() {
  ModelDescription model = SmallModel(3, 2, 8);
  model.layer.relative_positions.kind = RelativePositions::kRotary;
  model.layer.relative_positions.rotary = {RotaryFrequencies(8, 100)};
  return model;
}

TEST(PositionTablesTest, HoldEachRotationOnce) {
  ModelDescription model = RotaryModel();
  const RotaryShape wide = {RotaryFrequencies(8, 100)}, narrow = {RotaryFrequencies(4, 7), 2};
  model.SplitShapes();
  model.layer_shapes[1].relative_positions.rotary = narrow;
  const PositionTables tables(model, 50);
  EXPECT_EQ(tables.bytes(), 50 * (8 + 4) * int64_t{sizeof(float)});
  EXPECT_EQ(tables.bytes(), PositionTables::Bytes(model, 50).value());
  EXPECT_EQ(tables.rotary(wide).shape(), wide);
  EXPECT_EQ(tables.rotary(narrow).shape(), narrow);
  EXPECT_EQ(tables.rotary(narrow).cosines(0)[0], 2);
}

TEST(PositionTablesTest, AreSharedByRunsOfOneSize) {
  const ModelDescription model = RotaryModel();
  SharedPositionTables shared;
  std::shared_ptr<const PositionTables> first = shared.Find(model, 50, {});
  EXPECT_EQ(shared.Find(model, 50, {}), first);
  EXPECT_NE(shared.Find(model, 60, {}), first);
  const std::weak_ptr<const PositionTables> seen = first;
  first.reset();
  EXPECT_TRUE(seen.expired());
  EXPECT_NE(shared.Find(model, 50, {}), nullptr);
}

}  // namespace position_tables_test
}  // namespace attendant::test_support
