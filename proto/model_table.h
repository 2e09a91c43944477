// A model's description for people.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "attendant/v1/encoder_service.pb.h"

namespace attendant::proto {

// A property of models.
struct ModelRow {
  const char* label;
  // The fields that the text tells, separated by spaces: "layers weight_sets", "layer.norm_kind".
  const char* fields;
  // Empty if the model does not have the property.
  std::string (*text)(const v1::GetModelResponse& model);
};

// Every field of the message is in a row, except those that become lines of their own.
absl::Span<const ModelRow> ModelTable();

struct ModelLine {
  std::string label;
  std::string text;
};

// The rows with a text, then a line for each of `pruned_layers` and of `stage_costs`. Names that
// come from files are as they are there, control characters included.
std::vector<ModelLine> ModelLines(const v1::GetModelResponse& model);

}  // namespace attendant::proto
