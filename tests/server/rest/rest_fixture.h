// RestFixture, the service behind an HTTP port with its APIs, and its callers.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "server/text_calls/text_server.h"
#include "tests/server/support/test_server.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {

using Json = nlohmann::json;

// An answer over HTTP, taken apart.
struct RestResult {
  int status = 0;                              // 0: there was no answer
  std::map<std::string, std::string> headers;  // by their names in lower case
  std::string body;

  Json json() const { return Json::parse(body, nullptr, /*allow_exceptions=*/false); }
  std::string error() const { return json().value("error", ""); }
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

inline RestResult ParseResult(const std::string& answer) {
  RestResult result;
  if (answer.size() < 12) return result;
  result.status = std::stoi(answer.substr(9, 3));
  const size_t end = answer.find("\r\n\r\n");
  size_t line = answer.find("\r\n") + 2;
  while (line < end) {
    const size_t next = answer.find("\r\n", line), colon = answer.find(": ", line);
    result.headers[absl::AsciiStrToLower(answer.substr(line, colon - line))] =
        answer.substr(colon + 2, next - colon - 2);
    line = next + 2;
  }
  result.body = answer.substr(end + 4);
  return result;
}

// The head of a request with a body of this size.
inline std::string PostHead(const std::string& path, size_t size, const std::string& headers = "") {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "Content-Length: ", size,
                      "\r\n\r\n");
}

class RestFixture {
 public:
  // Places and times that no test waits for.
  static HttpLimits Limits() { return {.connections = 16, .brief_timeout = absl::Hours(1)}; }

  explicit RestFixture(TestServerOptions options = {}, const HttpLimits& limits = Limits(),
                       const ServerSecrets& secrets = {})
      : server_(std::move(options)), secrets_(secrets) {
    Serve(limits);
  }
  ~RestFixture() {
    server_.gate().Open();
    http_.reset();
    server_.Stop();
  }

  TestServer& server() { return server_; }
  int port() const { return http_->port(); }
  void StopHttp() { http_.reset(); }

  RestResult Get(const std::string& path, const std::string& headers = "") const {
    return Call(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "\r\n"));
  }
  RestResult Post(const std::string& path, const std::string& body,
                  const std::string& headers = "") const {
    return Call(PostHead(path, body.size(), headers) + body);
  }
  RestResult Infer(const std::string& model, const Json& body) const {
    return Post(absl::StrCat("/v2/models/", model, "/infer"), body.dump());
  }
  RestResult Call(const std::string& request) const {
    return ParseResult(Exchange(port(), request));
  }

 private:
  void Serve(const HttpLimits& limits) {
    HttpHandlers handlers;
    handlers.metrics = [this] { return server_.Scrape(); };
    handlers.ready = [] { return true; };
    handlers.call = [this](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
      return StartHttpCall(request, reply, secrets_, "1.0", &server_.service().method_context());
    };
    http_ = HttpServer::Start("127.0.0.1", 0, std::move(handlers), limits, secrets_).value();
  }

  TestServer server_;
  const ServerSecrets secrets_;
  std::unique_ptr<HttpServer> http_;
};

// Two sequences of token ids for "tiny", the second of two tokens, as IdsRequest has them.
inline Json IdsBody() {
  return Json::parse(R"({"id": "some id", "inputs": [
    {"name": "input_ids", "datatype": "INT64", "shape": [2, 4], "data": [11, 48, 85, 22, 59, 7, 33, 0]},
    {"name": "attention_mask", "datatype": "INT64", "shape": [2, 4], "data": [[1, 1, 1, 1], [1, 1, 0, 0]]}
  ]})");
}

}  // namespace attendant::server
