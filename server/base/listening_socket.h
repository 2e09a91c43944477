// ListeningSocket, a socket that waits for connections over TCP or over a Unix socket.
#pragma once

#include <netdb.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

// Is true for an address such as "unix:/run/attendant.sock".
bool IsUnixAddress(absl::string_view address);

// A socket that is bound to its address from the start, so that a taken one is found before the
// models load, but that nobody can connect to before Listen.
class ListeningSocket {
 public:
  // Binds to `port` of every address that `address` resolves to; 0 picks a free one. "::" includes
  // IPv4. For a Unix address `port` does not matter. The message of an error is the reason alone.
  static absl::StatusOr<std::vector<std::unique_ptr<ListeningSocket>>> Bind(
      const std::string& address, int port);
  // The same for the first of the addresses that can be bound, over TCP.
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> BindFirst(const std::string& address,
                                                                    int port);
  // Closes the socket and removes the file of a Unix socket, if it still is that of this socket.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  // From now on callers can connect. The file of a Unix socket, which its owner and group may use,
  // appears now and replaces that of a server that has ended; the file of a running server is an
  // error.
  absl::Status Listen();

  int descriptor() const { return descriptor_; }
  bool is_unix() const { return !path_.empty(); }
  int port() const;  // 0 for a Unix socket

 private:
  explicit ListeningSocket(int descriptor) : descriptor_(descriptor) {}
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> BindUnix(const std::string& path);
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> BindTcp(const addrinfo& target, int port);

  const int descriptor_;
  // Only for Unix sockets. Until it listens, the file has another name, path_ + ".new".
  std::string path_;
  struct stat file_ = {};
};

}  // namespace attendant::server
