// HttpClient, which sends HTTP and HTTPS requests to the Hub.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hub/hub_options.h"

namespace attendant::server {

// Receives the body of a successful response in pieces. An error ends the transfer, which returns
// it.
struct HttpSink {
  // Called before the first piece with its offset in the body: the requested one, or 0 if the
  // server sends the whole body.
  std::function<absl::Status(int64_t offset)> begin;
  std::function<absl::Status(absl::string_view bytes)> write;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // by lower-case name
  std::string url;                             // after redirects

  // Returns the value of a header, by lower-case name; empty if absent.
  std::string header(const std::string& name) const;
};

// Follows redirects, but from https only to https. Sends the token only to the scheme, host and
// port of the endpoint. Verifies certificates. Uses proxies from libcurl's variables, such as
// https_proxy. Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(const HubOptions& options);
  ~HttpClient();

  // Requests `url` from byte `from`. `sink` receives the body of a response 200 or 206; other
  // bodies are discarded. `timeout` bounds the whole transfer; connecting and stalls have their own
  // limits. Returns UNAVAILABLE if the transfer is incomplete and a retry may help, and
  // FAILED_PRECONDITION if the server cannot be trusted or the URL is invalid.
  absl::StatusOr<HttpResponse> Get(const std::string& url, int64_t from, absl::Duration timeout,
                                   const HttpSink& sink);

  // Requests the headers of `url`. Returns a redirect to another host instead of following it.
  absl::StatusOr<HttpResponse> Head(const std::string& url, absl::Duration timeout);

 private:
  struct Transfer;
  absl::StatusOr<HttpResponse> Ask(Transfer& transfer);
  absl::Status AskOnce(Transfer& transfer);

  const HubOptions options_;
  std::unique_ptr<void, void (*)(void*)> handle_;  // a CURL*, which keeps connections open
};

}  // namespace attendant::server
