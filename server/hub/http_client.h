// HttpClient, which asks the Hub by HTTP and HTTPS.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/hub/hub_options.h"

namespace attendant::server {

// Receives the body of a successful response, piece by piece. An error ends the transfer, which
// then returns it.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Called before the first piece with its offset in the whole body: the requested one, or 0 if the
  // server sends the whole body.
  virtual absl::Status Begin(int64_t offset) = 0;
  virtual absl::Status Write(absl::string_view bytes) = 0;
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // by lower-case name
  std::string url;                             // after redirects

  // Returns the value of a header, given in lower case; empty if there is none.
  std::string header(const std::string& name) const;
};

// Follows redirects; from https only to https. Sends the token only to the scheme, host and port of
// the endpoint. Verifies certificates. Uses the proxies that libcurl's variables name, such as
// https_proxy. Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(const HubOptions& options);
  ~HttpClient();

  // Requests `url` from byte `from` on. `sink` receives the body of a response 200 or 206; other
  // bodies are dropped. `timeout` bounds the whole transfer; connecting and stalls have bounds of
  // their own. UNAVAILABLE: the transfer did not complete, and a retry may help.
  // FAILED_PRECONDITION: the server cannot be trusted, or the URL cannot be used.
  absl::StatusOr<HttpResponse> Get(const std::string& url, int64_t from, absl::Duration timeout,
                                   HttpSink& sink);

  // Requests the headers of `url`. Does not follow a redirect to another host, but returns it.
  absl::StatusOr<HttpResponse> Head(const std::string& url, absl::Duration timeout);

 private:
  struct Transfer;
  absl::StatusOr<HttpResponse> Ask(Transfer& transfer);
  absl::Status AskOnce(Transfer& transfer);

  const HubOptions options_;
  std::unique_ptr<void, void (*)(void*)> handle_;  // a CURL*, which keeps connections
};

}  // namespace attendant::server
