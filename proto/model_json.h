// A model's description for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "attendant/v1/encoder_service.pb.h"

namespace attendant::proto {

using Json = nlohmann::ordered_json;

// A member for each field, under the field's name in the protocol. A message that is not set and
// an enum value that says nothing are null; other enum values are their names in lower case, and a
// BlockPair is [query, key].
Json ToJson(const v1::GetModelResponse& model);

// The shortest decimal that gives the same float back. JSON has no NaN and no infinity: "NaN",
// "Infinity" and "-Infinity" stand for them, as in the JSON of protobuf.
Json ToJson(float value);

}  // namespace attendant::proto
