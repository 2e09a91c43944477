#include "server/hub/hub_api.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace attendant::server {
namespace {

constexpr char kLogin[] = "set HF_TOKEN to a token with access, or log in with: hf auth login";

// Percent-encodes a part of a URL's path. Leaves `kept` as it is.
std::string EncodeUrl(absl::string_view text, char kept) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-._~", c) || c == kept) {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

// Returns the digest in W/"…" or "…"; empty if it is not a digest.
std::string DigestIn(absl::string_view etag) {
  absl::ConsumePrefix(&etag, "W/");
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  return IsHex(etag, 40) || IsHex(etag, 64) ? std::string(etag) : "";
}

// Returns the Hub's explanation in parentheses, safe for a terminal.
std::string WordsOf(const HttpResponse& response) {
  const std::string words = response.header("x-error-message").substr(0, 200);
  return words.empty() ? "" : absl::StrCat(" (", absl::CHexEscape(words), ")");
}

// Returns an answer other than 200 and 206 as an error. `page` shows the repository to a browser.
absl::Status HubRefusal(const HttpResponse& response, const std::string& page, bool has_token) {
  const int status = response.status;
  const std::string code = response.header("x-error-code");
  const std::string words = WordsOf(response);
  if (code == "GatedRepo") {
    return absl::PermissionDeniedError(
        absl::StrCat("gated, HTTP ", status, words, "; accept its terms at ", page, " and ",
                     has_token ? "use a token of that account" : kLogin));
  }
  if (code == "RevisionNotFound") {
    return absl::NotFoundError(absl::StrCat("no such revision, HTTP ", status, words));
  }
  if (code == "EntryNotFound") {
    return absl::NotFoundError(absl::StrCat("no such file, HTTP ", status, words));
  }
  if (status == 401 && has_token && code.empty()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the Hub rejected the token, HTTP 401", words, "; ", kLogin));
  }
  if (status == 401 || status == 404) {
    return absl::Status(
        status == 401 ? absl::StatusCode::kUnauthenticated : absl::StatusCode::kNotFound,
        absl::StrCat("no such repository, or it is private, HTTP ", status, words,
                     "; check the name", has_token ? "" : absl::StrCat(", or ", kLogin)));
  }
  if (status == 403) {
    return absl::PermissionDeniedError(absl::StrCat("no access, HTTP 403", words, "; ", kLogin));
  }
  if (status == 408 || status == 429 || status >= 500) {
    return absl::UnavailableError(
        absl::StrCat("the Hub is unavailable, HTTP ", status, words,
                     status == 429 && !has_token ? absl::StrCat("; ", kLogin) : ""));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("expected HTTP 200 from the Hub; got ", status, words));
}

}  // namespace

HubApi::HubApi(const HubOptions& options, const HubReference& reference)
    : options_(options), reference_(reference), http_(options) {}

std::string HubApi::FileUrl(const std::string& commit, const std::string& path) const {
  return absl::StrCat(options_.endpoint, "/", reference_.repository, "/resolve/", commit, "/",
                      EncodeUrl(path, '/'));
}

absl::Status HubApi::Check(const absl::StatusOr<HttpResponse>& response) const {
  if (!response.ok()) return response.status();
  if (response->status == 200 || response->status == 206) return absl::OkStatus();
  return HubRefusal(*response, absl::StrCat(options_.endpoint, "/", reference_.repository),
                    !options_.token.empty());
}

absl::StatusOr<HubListing> HubApi::List() {
  std::string text;
  const auto write = [&](absl::string_view bytes) {
    if (static_cast<int64_t>(text.size() + bytes.size()) > kMostListingBytes) {
      return absl::InvalidArgumentError(absl::StrCat("expected a list of files of at most ",
                                                     kMostListingBytes, " bytes; got more"));
    }
    text.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  };
  const auto begin = [&](int64_t) {
    text.clear();
    return absl::OkStatus();
  };
  const std::string url =
      absl::StrCat(options_.endpoint, "/api/models/", reference_.repository, "/revision/",
                   EncodeUrl(reference_.revision, '\0'), "?blobs=true");
  RETURN_IF_ERROR(Check(http_.Get(url, 0, options_.api_timeout, {begin, write})));
  return ParseListing(text);
}

absl::Status HubApi::Complete(const std::string& commit, const std::string& path, HubFile& file) {
  ASSIGN_OR_RETURN(const HttpResponse response,
                   http_.Head(FileUrl(commit, path), options_.api_timeout));
  const bool redirects = response.status / 100 == 3;
  RETURN_IF_ERROR(redirects ? absl::OkStatus() : Check(response));
  const std::string linked = response.header("x-linked-etag");
  file.etag = DigestIn(linked.empty() ? response.header("etag") : linked);
  const std::string size = response.header("x-linked-size");
  const std::string length = redirects ? "" : response.header("content-length");
  const bool has_size = absl::SimpleAtoi(size.empty() ? length : size, &file.size);
  if (!file.etag.empty() && has_size && file.size >= 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": expected headers with its size and its SHA-1 or SHA-256 from ",
                   options_.endpoint, "; got none; check that HF_ENDPOINT names a Hub"));
}

absl::Status HubApi::Download(const std::string& commit, const std::string& path, int64_t from,
                              const HttpSink& sink) {
  return Check(http_.Get(FileUrl(commit, path), from, absl::InfiniteDuration(), sink));
}

}  // namespace attendant::server
