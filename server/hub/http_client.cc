#include "server/hub/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace attendant::server {
namespace {

constexpr int kMostRedirects = 10;
constexpr size_t kMostHeaderBytes = 64 << 10;
constexpr long kBufferBytes = 512 << 10;

// Returns a part of a URL, such as its host; empty if it has none or is malformed.
std::string PartOf(const std::string& url, CURLUPart part) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(curl_url(), curl_url_cleanup);
  char* text = nullptr;
  if (parsed == nullptr || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parsed.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) {
    return "";
  }
  std::string value = absl::AsciiStrToLower(text);
  curl_free(text);
  return value;
}

bool SameOrigin(const std::string& a, const std::string& b) {
  constexpr CURLUPart kParts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
  return std::all_of(std::begin(kParts), std::end(kParts),
                     [&](CURLUPart part) { return PartOf(a, part) == PartOf(b, part); });
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Returns the number of the first byte in "bytes 5-9/10"; -1 if it is not of this form.
int64_t FirstByte(absl::string_view content_range) {
  int64_t first = -1;
  if (!absl::ConsumePrefix(&content_range, "bytes ")) return -1;
  return absl::SimpleAtoi(content_range.substr(0, content_range.find('-')), &first) ? first : -1;
}

// Names a server in messages. Never shows the rest of a URL: redirects may contain signatures.
std::string ServerOf(const std::string& url) {
  return absl::StrCat(PartOf(url, CURLUPART_SCHEME), "://", PartOf(url, CURLUPART_HOST), ":",
                      PartOf(url, CURLUPART_PORT));
}

absl::Status TransferError(CURLcode code, const std::string& url, const char* why) {
  const std::string text =
      absl::StrCat(ServerOf(url), ": ", why[0] != '\0' ? why : curl_easy_strerror(code));
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return absl::FailedPreconditionError(
          absl::StrCat("the certificate cannot be verified: ", text,
                       "; set SSL_CERT_FILE to trust other authorities"));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::FailedPreconditionError(absl::StrCat("expected an http or https URL: ", text));
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return absl::UnavailableError(absl::StrCat("cannot reach the Hub: ", text));
    default:
      return absl::UnavailableError(absl::StrCat("the transfer failed: ", text));
  }
}

}  // namespace

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

// One request with its redirects.
struct HttpClient::Transfer {
  std::string url;
  int64_t from;
  absl::Duration timeout;
  const HttpSink* sink;  // null: only headers are asked for

  CURL* curl = nullptr;
  HttpResponse response = {};
  size_t header_bytes = 0;
  bool begun = false;
  absl::Status status = {};  // of the sink

  bool is_success() const { return response.status == 200 || response.status == 206; }

  // Also called for an empty body.
  bool Begin() {
    if (begun || !is_success() || sink == nullptr) return true;
    begun = true;
    int64_t first = 0;
    if (response.status == 206) first = FirstByte(response.header("content-range"));
    if (response.status == 206 && first != from) {
      status = absl::UnavailableError(
          absl::StrCat(ServerOf(url), ": expected bytes from ", from, " on; got \"",
                       absl::CHexEscape(response.header("content-range")), "\""));
      return false;
    }
    status = sink->begin(first);
    return status.ok();
  }

  static size_t TakeBody(const char* bytes, size_t, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    if (!transfer.is_success() || transfer.sink == nullptr) return count;
    if (!transfer.Begin()) return 0;
    transfer.status = transfer.sink->write({bytes, count});
    return transfer.status.ok() ? count : 0;
  }

  static size_t TakeHeader(const char* bytes, size_t, size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    const absl::string_view line = absl::StripAsciiWhitespace(absl::string_view(bytes, count));
    if (absl::StartsWith(line, "HTTP/")) transfer.response.headers.clear();  // after 100 Continue
    transfer.header_bytes += count;
    if (transfer.header_bytes > kMostHeaderBytes) {
      transfer.status = absl::FailedPreconditionError(
          absl::StrCat(ServerOf(transfer.url), ": expected at most ", kMostHeaderBytes,
                       " bytes of headers; got more"));
      return 0;
    }
    long code = 0;
    curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &code);
    transfer.response.status = static_cast<int>(code);
    if (const size_t colon = line.find(':'); colon != line.npos) {
      transfer.response.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
          std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
    return count;
  }
};

HttpClient::HttpClient(const HubOptions& options)
    : options_(options), handle_(nullptr, curl_easy_cleanup) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started == CURLE_OK) handle_.reset(curl_easy_init());
}

HttpClient::~HttpClient() = default;

absl::StatusOr<HttpResponse> HttpClient::Get(const std::string& url, int64_t from,
                                             absl::Duration timeout, const HttpSink& sink) {
  Transfer transfer = {url, from, timeout, &sink};
  return Ask(transfer);
}

absl::StatusOr<HttpResponse> HttpClient::Head(const std::string& url, absl::Duration timeout) {
  Transfer transfer = {url, 0, timeout, nullptr};
  return Ask(transfer);
}

absl::StatusOr<HttpResponse> HttpClient::Ask(Transfer& transfer) {
  if (handle_ == nullptr) return absl::InternalError("libcurl failed to initialize");
  for (int hop = 0; hop <= kMostRedirects; ++hop) {
    if (absl::Status status = AskOnce(transfer); !status.ok()) return status;
    transfer.response.url = transfer.url;
    if (!IsRedirect(transfer.response.status)) return std::move(transfer.response);
    char* next = nullptr;
    curl_easy_getinfo(transfer.curl, CURLINFO_REDIRECT_URL, &next);
    if (next == nullptr) return std::move(transfer.response);
    const std::string target = next;
    if (transfer.sink == nullptr && !SameOrigin(transfer.url, target)) {
      return std::move(transfer.response);
    }
    if (PartOf(transfer.url, CURLUPART_SCHEME) == "https" &&
        PartOf(target, CURLUPART_SCHEME) != "https") {
      return absl::FailedPreconditionError(
          absl::StrCat(ServerOf(transfer.url), ": expected a redirect to https; got a redirect to ",
                       ServerOf(target)));
    }
    transfer.url = target;
  }
  return absl::FailedPreconditionError(absl::StrCat(ServerOf(transfer.url), ": expected at most ",
                                                    kMostRedirects, " redirects; got more"));
}

absl::Status HttpClient::AskOnce(Transfer& transfer) {
  CURL* curl = transfer.curl = handle_.get();
  transfer.response = HttpResponse();
  transfer.header_bytes = 0;
  curl_easy_reset(curl);
  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl, CURLOPT_URL, transfer.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, options_.user_agent.c_str());
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(options_.connect_timeout)));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                   static_cast<long>(absl::ToInt64Seconds(options_.stall_timeout)));
  if (transfer.timeout != absl::InfiniteDuration()) {
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(absl::ToInt64Milliseconds(transfer.timeout)));
  }
  if (!options_.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_file.c_str());
  if (!options_.token.empty() && SameOrigin(transfer.url, options_.endpoint)) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
  }
  if (transfer.sink == nullptr) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  const std::string range = absl::StrCat(transfer.from, "-");
  if (transfer.from > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Transfer::TakeBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, Transfer::TakeHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (!transfer.status.ok()) return transfer.status;
  if (code != CURLE_OK) return TransferError(code, transfer.url, why);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  transfer.response.status = static_cast<int>(status);
  transfer.Begin();
  return transfer.status;
}

}  // namespace attendant::server
