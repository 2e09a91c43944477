#include "client/inspect/inspection_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace attendant::client {
namespace inspection_json_test {

using Json = nlohmann::ordered_json;

Inspection Small() {
  Inspection inspection;
  inspection.model.set_name("m");
  inspection.compute_type = "bf16x3";
  inspection.cells = 128;
  SequenceInspection& sequence = inspection.sequences.emplace_back();
  sequence.positions = {0, 2};
  sequence.token_ids = {101, 102};
  sequence.token_texts = {"[CLS]", "[SEP]"};
  sequence.rare_ids = {102};
  LayerInspection& layer = sequence.layers.emplace_back();
  layer.layer = 3;
  layer.token_uniformity = 1e-16;
  HeadInspection& head = layer.heads.emplace_back();
  head.number = 5;
  head.map = Matrix{{1, 0}, {0.25, 0.75}};
  head.statistics = MeasureHead(head.map, {false, true});
  return inspection;
}

TEST(InspectionJsonTest, HoldsTheStatistics) {
  const Json json = ToJson(Small(), MapFormat::kValues);
  EXPECT_EQ(json["model"], "m");
  EXPECT_EQ(json["compute_type"], "bf16x3");
  const Json& sequence = json["sequences"][0];
  EXPECT_EQ(sequence["tokens"], 2);
  EXPECT_EQ(sequence["positions"], Json({0, 2}));
  EXPECT_EQ(sequence["token_ids"], Json({101, 102}));
  EXPECT_EQ(sequence["token_texts"], Json({"[CLS]", "[SEP]"}));
  EXPECT_EQ(sequence["rare_ids"], Json({102}));
  EXPECT_EQ(sequence["map_cells"], 2);
  EXPECT_EQ(sequence["input_uniformity"], nullptr);
  EXPECT_EQ(sequence["layers"][0]["layer"], 3);
  EXPECT_EQ(sequence["layers"][0]["token_uniformity"], 1e-16);
  const Json& head = sequence["layers"][0]["heads"][0];
  EXPECT_EQ(head["head"], 5);
  EXPECT_EQ(head["confidence"], 0.875);
  EXPECT_EQ(head["positional"], false);
  EXPECT_EQ(head["rare_share"], 0.5);
  EXPECT_EQ(head["largest_asymmetry"], 0.25);
  EXPECT_EQ(head["rank_of_90_percent"], 2);
  EXPECT_EQ(head["cumulative_singular_values"].size(), 2u);
  EXPECT_EQ(head["map"], Json({{1.0, 0.0}, {0.25, 0.75}}));
}

TEST(InspectionJsonTest, PacksTheMapsOfAPage) {
  const Json json = ToJson(Small(), MapFormat::kBytes);
  // ffffff, 000000, 400000, bfffff
  EXPECT_EQ(json["sequences"][0]["layers"][0]["heads"][0]["map"], "////AAAAQAAAv///");
}

TEST(InspectionJsonTest, HasNullForMissingAndNonFiniteValues) {
  Inspection inspection = Small();
  inspection.compute_type.clear();
  inspection.sequences[0].token_ids.clear();
  inspection.sequences[0].token_texts.clear();
  inspection.sequences[0].rare_ids.clear();
  HeadInspection& head = inspection.sequences[0].layers[0].heads[0];
  head.map = Matrix(2, 2, std::numeric_limits<double>::quiet_NaN());
  head.statistics = MeasureHead(head.map);
  const Json json = Json::parse(ToJson(inspection, MapFormat::kValues).ToLine());
  EXPECT_EQ(json["compute_type"], nullptr);
  EXPECT_EQ(json["sequences"][0]["token_ids"], nullptr);
  EXPECT_EQ(json["sequences"][0]["token_texts"], nullptr);
  EXPECT_EQ(json["sequences"][0]["rare_ids"], nullptr);
  const Json& written = json["sequences"][0]["layers"][0]["heads"][0];
  EXPECT_EQ(written["rare_share"], nullptr);
  EXPECT_EQ(written["rank_of_90_percent"], nullptr);
  EXPECT_EQ(written["cumulative_singular_values"], nullptr);
  EXPECT_EQ(written["map"][0][0], nullptr);
}

}  // namespace inspection_json_test
}  // namespace attendant::client
