// Errors of the text APIs: their kinds, and their form in each API.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace attendant::server {

// The API that determines the form of an error.
enum class ErrorStyle {
  kOpenAi,  // {"error": {"message", "type", "param", "code"}}
  kTei,     // text-embeddings-inference: {"error", "error_type"}
  kCohere,  // {"message"}
  kJina,    // {"detail", "message"}, also read by clients of Cohere's first API
  kOllama,  // {"error"}
};

// Finer than a status code. The kind of a status without one follows from its code: kInvalid for
// INVALID_ARGUMENT, kNoModel for NOT_FOUND, kUnfit for FAILED_PRECONDITION and UNIMPLEMENTED,
// kLargeBody for OUT_OF_RANGE, kNoKey, kForbidden, kBusy for RESOURCE_EXHAUSTED, kTimeout,
// kUnavailable, kGone for CANCELLED, otherwise kBroken.
enum class TextErrorKind {
  kInvalid,        // an invalid member
  kMalformed,      // the body is not JSON
  kEmpty,          // an empty list
  kOversized,      // a text or list over the limits
  kUntokenizable,  // a text or id unknown to the tokenizer or model
  kLargeBody,      // the body is too large
  kNoKey,
  kForbidden,
  kNoModel,
  kNoRoute,
  kNoMethod,
  kUnfit,  // the model does not support the task
  kBusy,
  kTimeout,
  kUnavailable,
  kGone,  // the client disconnected
  kBroken,
  kFailed,  // the model's output cannot be returned
};

// Returns a status of a matching code, with the kind as payload.
absl::Status TextError(TextErrorKind kind, const std::string& message);

// Returns TextError of "<field>: expected <expected>; got <got>".
absl::Status InvalidMember(const std::string& field, const std::string& expected,
                           const std::string& got, TextErrorKind kind = TextErrorKind::kInvalid);

TextErrorKind KindOf(const absl::Status& error);

// Returns the response to a failed request; `error` must not be OK. Sets the headers
// Attendant-Reason (server/metrics/refusal.h) and, if a retry may succeed, Retry-After in whole
// seconds and Retry-After-Ms.
HttpAnswer TextErrorAnswer(ErrorStyle style, const absl::Status& error,
                           absl::Duration retry_after = absl::Seconds(1));

}  // namespace attendant::server
