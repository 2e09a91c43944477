// The --json documents' parts.
#pragma once

#include "client/cli/command.h"
#include "client/messages.h"

namespace attendant::client {

// {dtype, shape, values}: nested lists, floats with the digits that give the same float back. JSON
// has no NaN and no infinity: "NaN", "Infinity" and "-Infinity" stand for them, as in the JSON of
// protobuf.
Json ToJson(const Tensor& tensor);

Json ToJson(const Execution& execution);
Json ToJson(const ModelInfo& model);

// The shortest decimal of the float itself, not of the double that it widens to.
Json ToJson(float value);

}  // namespace attendant::client
