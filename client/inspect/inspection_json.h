// JSON of an inspection.
#pragma once

#include "client/inspect/inspection.h"
#include "client/json/json_value.h"

namespace attendant::client {

// The form of attention maps in JSON.
enum class MapFormat {
  kValues,  // nested lists of probabilities, to 6 decimals
  kBytes,   // base64 of three bytes per cell, the highest first: 2^24 - 1 times the probability
};

// Returns {model, sequences: [{tokens, positions, token_ids, token_texts, input_uniformity, layers:
// [{layer, token_uniformity, heads: [{confidence, …, map}]}]}], …}. Numbers that are not finite
// become null.
JsonValue ToJson(const Inspection& inspection, MapFormat format);

}  // namespace attendant::client
