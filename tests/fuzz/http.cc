#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/http/http_server.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tcp_client.h"

namespace attendant {

std::string FuzzHttp(absl::string_view input) {
  static const auto server = server::HttpServer::Start(
      "127.0.0.1", 0, {.metrics = [] { return "m 1\n"; }, .ready = [] { return true; }},
      {.connections = 4,
       .idle_timeout = absl::Milliseconds(20),
       .brief_timeout = absl::Milliseconds(20)});
  if (!server.ok()) return server.status().ToString();
  const int port = (*server)->port();
  static int calls = 0;
  // From many addresses, as each has ports for 28,000 connections that have just ended.
  TcpClient client(port, absl::StrCat("127.0.0.", 1 + calls % 200));
  if (client.connected() && client.Send(std::string(input))) client.ReceiveAll();
  if (++calls % 64 != 1) return "";  // the server's answers take longer than what is tried here
  const std::string answer = Exchange(port, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
  return absl::StartsWith(answer, "HTTP/1.1 200") ? "" : "no answer afterwards: " + answer;
}

}  // namespace attendant
