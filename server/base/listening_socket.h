// ListeningSocket, a TCP or Unix socket that accepts connections.
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

// Returns true for an address such as "unix:/run/attendant.sock".
bool IsUnixAddress(absl::string_view address);

// A socket bound to its address from the start, so that an address in use is detected before the
// models load, but closed to clients until Listen.
class ListeningSocket {
 public:
  // Binds to `port` of every address that `address` resolves to; 0 picks a free port. "::" includes
  // IPv4. Unix addresses ignore `port`. The message of an error is only the reason.
  static absl::StatusOr<std::vector<std::unique_ptr<ListeningSocket>>> Bind(
      const std::string& address, int port);
  // The same over TCP, for the first address that can be bound.
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> BindFirst(const std::string& address,
                                                                    int port);
  // Closes the socket and removes the file of a Unix socket if it still belongs to this socket.
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  // Opens the socket to clients. Creates the file of a Unix socket, usable by its owner and group,
  // replacing the file of a server that has ended; fails if another server is listening there.
  absl::Status Listen();

  int descriptor() const { return descriptor_; }
  bool is_unix() const { return !path_.empty(); }
  int port() const;  // 0 for a Unix socket

 private:
  explicit ListeningSocket(int descriptor) : descriptor_(descriptor) {}
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> BindUnix(const std::string& path);
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> BindTcp(const addrinfo& target, int port);

  const int descriptor_;
  // Only for Unix sockets. Until Listen, the file is named path_ + ".new".
  std::string path_;
  struct stat file_ = {};
};

}  // namespace attendant::server
