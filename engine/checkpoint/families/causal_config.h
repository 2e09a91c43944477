// The keys of config.json for causal attention, its windows, and heads that share keys and values.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/causal_choice.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/model_description.h"

namespace attendant {

// Sets the number of heads of keys and values, and whether attention is causal, with its window in
// the layers that have one. Called after everything else of the layers is read.
void ReadCausalAttention(const Family& family, const Json& json, ConfigReader& config,
                         Problems& problems, ModelDescription& model);

// Makes the model causal or bidirectional as the operator says. INVALID_ARGUMENT if the family is
// never causal; the message begins with `folder`.
absl::Status ChooseCausality(const std::string& folder, CausalChoice choice, const Family& family,
                             ModelDescription& model);

}  // namespace attendant
