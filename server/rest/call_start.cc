#include "server/rest/call_start.h"

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/account/peer.h"
#include "server/account/trace_context.h"

namespace attendant::server {
namespace {

// Returns the declared length of a body; none if it comes in chunks.
std::optional<int64_t> DeclaredLength(const HttpRequest& request) {
  if (!request.Header("Transfer-Encoding").empty()) return std::nullopt;
  return LengthIn(request, "Content-Length").value_or(0);
}

}  // namespace

std::optional<int64_t> LengthIn(const HttpRequest& request, const char* header) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::string text = request.Header(header);
  if (text.empty()) return std::nullopt;
  uint64_t length = 0;
  const bool is_length = absl::SimpleAtoi(text, &length) && length < uint64_t{kMost};
  return is_length ? static_cast<int64_t>(length) : kMost;
}

absl::StatusOr<std::string> Authorize(const HttpRequest& request, const ServerSecrets& secrets) {
  if (!request.has_certificate) {
    return absl::PermissionDeniedError("the call needs a valid client certificate");
  }
  return secrets.Identify(request.authorization, TokenScope::kInfer);
}

HttpStart Refuse(HttpAnswer answer, const HttpRequest& request) {
  const bool asks = !request.Header("Expect").empty();
  if (!request.has_body || asks || answer.status == 413) return answer;
  return [answer = std::move(answer)](const std::string&) { return answer; };
}

HttpStart StartCall(const CallHead& head, const std::shared_ptr<HttpReply>& reply,
                    const std::function<std::shared_ptr<HttpCall>(BodyCallArgs entry)>& make) {
  const HttpRequest& request = head.request;
  const ServiceContext& context = head.context;
  const std::string trace = ParseTraceParent(request.Header(kTraceParent));
  RequestRecorder account(head.method, trace, context.clock.Now());
  const auto refuse = [&](const absl::Status& status, unsigned http_status = 0) {
    account.Report(status, context);
    HttpAnswer refusal = head.error_answer(status, RetryAfter(context));
    if (http_status != 0) refusal.status = http_status;
    if (!trace.empty()) refusal.headers.emplace_back(kTraceParent, trace);
    return Refuse(std::move(refusal), request);
  };
  const std::optional<int64_t> length = DeclaredLength(request);
  const int64_t most = context.limits.max_request_bytes;
  if (length.value_or(0) > most) {
    return refuse(absl::OutOfRangeError(absl::StrCat(
        "the body: expected at most ", most, " bytes (--max-request-tokens); got ", *length)));
  }
  const std::string encoding = request.Header("Content-Encoding");
  if (!encoding.empty() && encoding != "identity") {
    return refuse(
        absl::InvalidArgumentError("Content-Encoding: not supported; send the body uncompressed"),
        /*http_status=*/415);
  }
  std::string peer = head.token;
  if (peer.empty()) {
    peer = PeerOf(request.peer, request.Header("X-Forwarded-For"), context.limits.trusted_proxies);
  }
  Budget::Reservation slot;
  absl::Status status = request.call_room;
  if (status.ok()) status = context.admission.TakeSlot(peer, slot);
  if (!status.ok()) return refuse(status);
  return make(BodyCallArgs{context, std::move(peer), trace, length, std::move(slot),
                           std::move(account), reply});
}

}  // namespace attendant::server
