#include "server/text_api/text_error.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/metrics/refusal.h"
#include "server/text/base/json_tree.h"

namespace attendant::server {
namespace {

using Code = absl::StatusCode;
using Kind = TextErrorKind;

constexpr char kPayload[] = "attendant-text-error";
constexpr char kRequest[] = "invalid_request_error", kApi[] = "api_error";

// A kind in each API. Cohere, Jina and Ollama use OpenAI's status.
struct KindRow {
  Kind kind;
  Code code;
  unsigned openai_status;
  const char* openai_type;
  const char* openai_code;  // empty: null
  unsigned tei_status;
  const char* tei_type;
};

// In the order of TextErrorKind. The first row with a code applies to statuses without a kind.
constexpr KindRow kKinds[] = {
    {Kind::kInvalid, Code::kInvalidArgument, 400, kRequest, "", 422, "Validation"},
    {Kind::kMalformed, Code::kInvalidArgument, 400, kRequest, "", 400, "Validation"},
    {Kind::kEmpty, Code::kInvalidArgument, 400, kRequest, "", 400, "Empty"},
    {Kind::kOversized, Code::kInvalidArgument, 400, kRequest, "", 413, "Validation"},
    {Kind::kUntokenizable, Code::kInvalidArgument, 400, kRequest, "", 422, "Tokenizer"},
    {Kind::kLargeBody, Code::kOutOfRange, 413, kRequest, "", 413, "Validation"},
    {Kind::kNoKey, Code::kUnauthenticated, 401, kRequest, "invalid_api_key", 401, "Validation"},
    {Kind::kForbidden, Code::kPermissionDenied, 403, kRequest, "forbidden", 403, "Validation"},
    {Kind::kNoModel, Code::kNotFound, 404, kRequest, "model_not_found", 404, "Validation"},
    {Kind::kNoRoute, Code::kNotFound, 404, kRequest, "unknown_url", 404, "Validation"},
    {Kind::kNoMethod, Code::kNotFound, 405, kRequest, "method_not_allowed", 405, "Validation"},
    {Kind::kUnfit, Code::kFailedPrecondition, 400, kRequest, "model_not_supported", 424, "Backend"},
    {Kind::kBusy, Code::kResourceExhausted, 429, "rate_limit_error", "rate_limit_exceeded", 429,
     "Overloaded"},
    {Kind::kTimeout, Code::kDeadlineExceeded, 504, kApi, "timeout", 504, "Backend"},
    {Kind::kUnavailable, Code::kUnavailable, 503, kApi, "service_unavailable", 503, "Unhealthy"},
    {Kind::kGone, Code::kCancelled, 499, kApi, "cancelled", 499, "Backend"},
    {Kind::kBroken, Code::kInternal, 500, kApi, "internal_error", 500, "Backend"},
    {Kind::kFailed, Code::kInternal, 502, kApi, "server_error", 424, "Backend"}};

const KindRow& RowOf(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

Kind KindOfCode(Code code) {
  if (code == Code::kUnimplemented) return Kind::kUnfit;
  const auto* row = absl::c_find_if(kKinds, [&](const KindRow& one) { return one.code == code; });
  return row == std::end(kKinds) ? Kind::kBroken : row->kind;
}

// Returns the member named in a message "inputs[3].text: expected …", without list indices, as a
// JSON value.
std::string MemberOf(absl::string_view message) {
  const absl::string_view field = message.substr(0, message.find(": "));
  const auto named = [](char c) { return absl::ascii_isalnum(c) || absl::StrContains("_.[]", c); };
  if (field.size() == message.size() || !absl::c_all_of(field, named)) {
    return "null";
  }
  return text::QuoteJson(field.substr(0, field.find('[')));
}

std::string BodyOf(ErrorStyle style, const KindRow& row, absl::string_view message) {
  const std::string quoted = text::QuoteJson(message);
  switch (style) {
    case ErrorStyle::kOpenAi:
      return absl::StrCat(
          "{\"error\":{\"message\":", quoted, ",\"type\":\"", row.openai_type,
          "\",\"param\":", MemberOf(message),
          ",\"code\":", *row.openai_code == '\0' ? "null" : text::QuoteJson(row.openai_code),
          "},\"detail\":", quoted, "}");  // Jina's and Voyage's clients read `detail`
    case ErrorStyle::kTei:
      return absl::StrCat("{\"error\":", quoted, ",\"error_type\":\"", row.tei_type, "\"}");
    case ErrorStyle::kCohere:
      return absl::StrCat("{\"message\":", quoted, "}");
    case ErrorStyle::kJina:
      return absl::StrCat("{\"detail\":", quoted, ",\"message\":", quoted, "}");
    case ErrorStyle::kOllama:
      return absl::StrCat("{\"error\":", quoted, "}");
  }
  return quoted;
}

}  // namespace

absl::Status TextError(TextErrorKind kind, const std::string& message) {
  absl::Status status(RowOf(kind).code, message);
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(kind))));
  return status;
}

absl::Status InvalidMember(const std::string& field, const std::string& expected,
                           const std::string& got, TextErrorKind kind) {
  return TextError(kind, absl::StrCat(field, ": expected ", expected, "; got ", got));
}

TextErrorKind KindOf(const absl::Status& error) {
  const auto payload = error.GetPayload(kPayload);
  int number = 0;
  if (payload && absl::SimpleAtoi(std::string(*payload), &number)) return static_cast<Kind>(number);
  return KindOfCode(error.code());
}

HttpAnswer TextErrorAnswer(ErrorStyle style, const absl::Status& error,
                           absl::Duration retry_after) {
  const KindRow& row = RowOf(KindOf(error));
  HttpAnswer answer;
  answer.status = style == ErrorStyle::kTei ? row.tei_status : row.openai_status;
  answer.body = BodyOf(style, row, {error.message().data(), error.message().size()});
  answer.content_type = "application/json";
  if (answer.status == 401) answer.authenticate = "Bearer";
  if (const std::string reason = ReasonOf(error); !reason.empty()) {
    answer.headers.emplace_back("Attendant-Reason", reason);
  }
  if (answer.status == 429 || answer.status == 503) {
    // The first is HTTP's, in whole seconds; the other one is what OpenAI's clients look for.
    const int64_t ms = std::max<int64_t>(1, absl::ToInt64Milliseconds(retry_after));
    answer.headers.emplace_back("Retry-After", absl::StrCat((ms + 999) / 1000));
    answer.headers.emplace_back("Retry-After-Ms", absl::StrCat(ms));
  }
  return answer;
}

}  // namespace attendant::server
