// Model descriptions as text, for people.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "attendant/v1/encoder_service.pb.h"

namespace attendant::proto {

// A property of models.
struct ModelRow {
  const char* label;
  // The fields that the text covers, separated by spaces: "layers weight_sets", "layer.norm_kind".
  const char* fields;
  // Returns an empty string if the model does not have the property.
  std::string (*text)(const v1::GetModelResponse& model);
};

// Every field of the message is in a row, except pruned_layers and stage_costs.
absl::Span<const ModelRow> ModelTable();

struct ModelLine {
  std::string label;
  std::string text;
};

// Returns the non-empty rows, then a line for each of `pruned_layers` and `stage_costs`. Names from
// files are not escaped and may contain control characters.
std::vector<ModelLine> ModelLines(const v1::GetModelResponse& model);

}  // namespace attendant::proto
