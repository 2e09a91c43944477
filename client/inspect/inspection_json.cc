#include "client/inspect/inspection_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"

namespace attendant::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRankShare = 0.9;
constexpr double kByteSteps = 0xffffff;  // the largest number in three bytes

Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::round(value * 1e6) / 1e6;
}

Json RoundedList(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(Rounded(value));
  return list;
}

Json ValuesOf(const Matrix& map) {
  Json rows = Json::array();
  for (int64_t i = 0; i < map.rows(); ++i) {
    Json row = Json::array();
    for (int64_t j = 0; j < map.cols(); ++j) row.push_back(Rounded(map(i, j)));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json BytesOf(const Matrix& map) {
  std::string bytes;
  for (int64_t i = 0; i < map.rows(); ++i) {
    for (int64_t j = 0; j < map.cols(); ++j) {
      const double probability = map(i, j) > 0 ? std::min(map(i, j), 1.0) : 0;
      const auto steps = static_cast<uint32_t>(std::lround(kByteSteps * probability));
      for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(steps >> shift));
    }
  }
  return absl::Base64Escape(bytes);
}

Json OfHead(const HeadInspection& head, MapFormat format) {
  const HeadStatistics& statistics = head.statistics;
  Json json = {
      {"head", head.number},
      {"confidence", Rounded(statistics.confidence)},
      {"positional", statistics.positional()},
      {"neighbour", statistics.neighbour},
      {"neighbour_share", Rounded(statistics.neighbour_share)},
      {"rare_share", statistics.rare_share ? Rounded(*statistics.rare_share) : Json(nullptr)},
      {"symmetry", Rounded(statistics.symmetry)},
      {"largest_asymmetry", Rounded(statistics.largest_asymmetry)},
      {"rank_of_90_percent", nullptr},
      {"cumulative_singular_values", nullptr},
      {"map", format == MapFormat::kValues ? ValuesOf(head.map) : BytesOf(head.map)}};
  if (const auto& cumulative = statistics.cumulative_singular_values; !cumulative.empty()) {
    json["rank_of_90_percent"] = RankOfShare(cumulative, kRankShare);
    json["cumulative_singular_values"] = RoundedList(cumulative);
  }
  return json;
}

Json OfSequence(const SequenceInspection& sequence, int64_t cells, MapFormat format) {
  const auto tokens = static_cast<int64_t>(sequence.positions.size());
  Json layers = Json::array();
  for (const LayerInspection& layer : sequence.layers) {
    Json heads = Json::array();
    for (const HeadInspection& head : layer.heads) heads.push_back(OfHead(head, format));
    layers.push_back({{"layer", layer.layer},
                      // Not rounded, because a collapse shows at 1e-16.
                      {"token_uniformity", layer.token_uniformity},
                      {"heads", heads}});
  }
  return {
      {"tokens", tokens},
      {"positions", sequence.positions},
      {"token_ids", sequence.token_ids.empty() ? Json(nullptr) : Json(sequence.token_ids)},
      {"token_texts", sequence.token_texts.empty() ? Json(nullptr) : Json(sequence.token_texts)},
      {"rare_ids", sequence.rare_ids.empty() ? Json(nullptr) : Json(sequence.rare_ids)},
      {"map_cells", std::min(tokens, cells)},
      {"input_uniformity",
       sequence.input_uniformity ? Json(*sequence.input_uniformity) : Json(nullptr)},
      {"layers", layers}};
}

}  // namespace

JsonValue ToJson(const Inspection& inspection, MapFormat format) {
  const ModelInfo& model = inspection.model;
  Json sequences = Json::array();
  for (const SequenceInspection& sequence : inspection.sequences) {
    sequences.push_back(OfSequence(sequence, inspection.cells, format));
  }
  const std::string& type = inspection.compute_type;
  return Json{{"model", model.name()},
              {"family", model.family()},
              {"hidden_size", model.layer().hidden_size()},
              {"heads", model.layer().heads()},
              {"model_layers", model.layers()},
              {"compute_type", type.empty() ? Json(nullptr) : Json(type)},
              {"sequences", sequences}};
}

}  // namespace attendant::client
