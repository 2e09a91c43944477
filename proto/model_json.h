// Model descriptions as JSON, for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "attendant/v1/encoder_service.pb.h"

namespace attendant::proto {

using Json = nlohmann::ordered_json;

// Returns an object with a member for each field, named as in the protocol. Unset messages and
// unknown enum values are null; other enum values are their lower-case names, and a BlockPair is
// [query, key].
Json ToJson(const v1::GetModelResponse& model);

// Returns the shortest decimal that parses to the same float. NaN and infinities, which JSON lacks,
// become "NaN", "Infinity" and "-Infinity", as in protobuf's JSON.
Json ToJson(float value);

}  // namespace attendant::proto
