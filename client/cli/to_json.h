// JSON of tensors, executions and models, for the documents that --json prints.
#pragma once

#include "client/json/json_value.h"
#include "client/messages.h"

namespace attendant::client {

// Returns {dtype, shape, values}, where the values are nested lists.
JsonValue ToJson(const Tensor& tensor);

JsonValue ToJson(const Execution& execution);

// Returns a member for each field, as proto/model_json.h has them.
JsonValue ToJson(const ModelInfo& model);

}  // namespace attendant::client
