// Short HTTP responses of the protocol: JSON documents and errors.
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace attendant::server {

using RestJson = nlohmann::ordered_json;

HttpAnswer JsonAnswer(const RestJson& document, unsigned status = 200);

// {"error": "…"} with the HTTP status of the code: 400 for INVALID_ARGUMENT, 401, 403, 404, 413 for
// OUT_OF_RANGE, 429 for RESOURCE_EXHAUSTED, 499, 500, 501, 503, 504. A refusal that a later attempt
// may avoid (server/metrics/refusal.h) has its reason in the header Attendant-Reason and, for 429
// or 503, `retry_after` in whole seconds in Retry-After.
HttpAnswer ErrorAnswer(const absl::Status& status, absl::Duration retry_after = absl::Seconds(1));

// Converts every field under its proto name, set or not: numbers as numbers, enums by name. Omits
// bytes and map fields, which the converted messages do not use, and unset messages.
RestJson ToJson(const google::protobuf::Message& message);

}  // namespace attendant::server
