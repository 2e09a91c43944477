// An inspection as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "client/inspect/inspection.h"

namespace attendant::client {

enum class MapFormat {
  kValues,  // nested lists, probabilities to 6 decimals
  kBytes,   // base64 of a byte each, 255 times the root of the probability: for the page
};

// {model, sequences: [{tokens, positions, token_ids, input_uniformity, layers: [{layer,
// token_uniformity, heads: [{confidence, …, map}]}]}], …}. What is not finite becomes null.
nlohmann::ordered_json ToJson(const Inspection& inspection, MapFormat format);

}  // namespace attendant::client
