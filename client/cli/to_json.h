// JSON of tensors and executions, for the documents that --json prints.
#pragma once

#include "client/cli/command.h"
#include "client/messages.h"
#include "proto/model_json.h"

namespace attendant::client {

using proto::ToJson;  // of models and of floats

// Returns {dtype, shape, values}, where the values are nested lists.
Json ToJson(const Tensor& tensor);

Json ToJson(const Execution& execution);

}  // namespace attendant::client
