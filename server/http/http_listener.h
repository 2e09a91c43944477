// The socket on which the HTTP port listens.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace attendant::server {

// A connection that the listener has accepted. Its descriptor belongs to the caller.
struct AcceptedConnection {
  int descriptor = -1;
  sockaddr_storage peer = {};
  socklen_t peer_size = sizeof(sockaddr_storage);

  // Returns the bytes of the peer's IPv4 address, or the /64 network of its IPv6 address, all of
  // which belongs to one caller.
  std::string address() const;
  // Returns HttpRequest::peer.
  std::string name() const;
};

// Movable. The destructor closes the socket.
class HttpListener {
 public:
  // Listens on a host name, an IPv4 or an IPv6 address; port 0 stands for any free port. Returns
  // UNAVAILABLE with the address, port and reason if it cannot.
  static absl::StatusOr<HttpListener> Open(const std::string& address, int port);
  HttpListener(HttpListener&& other) noexcept;
  HttpListener& operator=(HttpListener&&) = delete;
  ~HttpListener();

  int descriptor() const { return descriptor_; }
  int port() const;
  // Returns the next connection, without waiting. If there is none, errno says why.
  std::optional<AcceptedConnection> Accept();
  // Makes poll report POLLHUP from now on. May be called on any thread.
  void Stop();

 private:
  explicit HttpListener(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace attendant::server
