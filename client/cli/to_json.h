// The --json documents' parts.
#pragma once

#include "client/cli/command.h"
#include "client/messages.h"
#include "proto/model_json.h"

namespace attendant::client {

using proto::ToJson;  // models, floats

// {dtype, shape, values}: nested lists.
Json ToJson(const Tensor& tensor);

Json ToJson(const Execution& execution);

}  // namespace attendant::client
