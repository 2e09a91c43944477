// Answers of the protocol over HTTP that are short: JSON documents and errors.
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
// OUT_OF_RANGE, 429 for RESOURCE_EXHAUSTED, 499, 500, 501, 503, 504. A refusal that another time
// might not meet (server/metrics/refusal.h) has its reason in the header Attendant-Reason, and, if
// it is 429 or 503, `retry_after` in whole seconds in Retry-After.
HttpAnswer ErrorAnswer(const absl::Status& status, absl::Duration retry_after = absl::Seconds(1));

// Every field under its name in the message, whether it is set or not; numbers as numbers, enum
// values by name. Without fields of bytes and maps, of which those messages have none that say
// anything here. Messages that are not set are left out.
RestJson ToJson(const google::protobuf::Message& message);

// The text as a JSON string, with its quotes.
std::string JsonText(const std::string& text);

}  // namespace attendant::server
