// Errors of the text APIs: reasons that these APIs tell apart, and the answer in the form of each.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace attendant::server {

// The API in whose form an error is written.
enum class ErrorStyle {
  kOpenAi,  // {"error": {"message", "type", "param", "code"}}
  kTei,     // text-embeddings-inference: {"error", "error_type"}
  kCohere,  // {"message"}
  kJina,    // {"detail", "message"}, which readers of Cohere's first API read too
};

// Finer than a status code. A status without one has that of its code: kInvalid for
// INVALID_ARGUMENT, kNoModel for NOT_FOUND, kUnfit for FAILED_PRECONDITION and UNIMPLEMENTED,
// kLargeBody for OUT_OF_RANGE, kNoKey, kForbidden, kBusy for RESOURCE_EXHAUSTED, kTimeout,
// kUnavailable, kGone for CANCELLED, else kBroken.
enum class TextErrorKind {
  kInvalid,        // a member is not as expected
  kMalformed,      // the body is not JSON
  kEmpty,          // a list without elements
  kOversized,      // a text or list beyond the limits
  kUntokenizable,  // a text or an id that the tokenizer or the model does not have
  kLargeBody,      // the body is beyond the limit
  kNoKey,
  kForbidden,
  kNoModel,
  kNoRoute,
  kNoMethod,
  kUnfit,  // the model cannot do that
  kBusy,
  kTimeout,
  kSlowBody,  // the body did not come in time
  kUnavailable,
  kGone,  // the client hung up
  kBroken,
  kFailed,  // the model's output cannot be returned
};

// A status of a code that suits the kind, with the kind as a payload.
absl::Status TextError(TextErrorKind kind, const std::string& message);

// Returns TextError of "<field>: expected <expected>; got <got>".
absl::Status InvalidMember(const std::string& field, const std::string& expected,
                           const std::string& got, TextErrorKind kind = TextErrorKind::kInvalid);

TextErrorKind KindOf(const absl::Status& error);

// The answer to a request that failed with this error, which is not OK. Has the headers
// Attendant-Reason (server/metrics/refusal.h) and, if it is worth trying again, Retry-After in
// whole seconds and Retry-After-Ms.
HttpAnswer TextErrorAnswer(ErrorStyle style, const absl::Status& error,
                           absl::Duration retry_after = absl::Seconds(1));

}  // namespace attendant::server
