// Connection, a socket that never blocks, with TLS or without.
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

namespace attendant::flood {

struct Target {
  int port = 0;            // of 127.0.0.1
  std::string unix_path;   // if not empty, instead of the port
  SSL_CTX* tls = nullptr;  // null for connections without TLS; must outlive them
};

// Returns a context for HTTP/2 that accepts any certificate: an attacker does not verify servers.
std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> MakeTlsContext();

// Not thread-safe.
class Connection {
 public:
  enum class Progress { kOpen, kWantsRead, kWantsWrite, kClosed };

  // Begins to connect, over TCP from the address `source`. `reads` is false for one that will never
  // read; its receive buffer is as small as the kernel allows. Returns null if that is not possible
  // at the moment, for instance because too many wait to be accepted.
  static std::unique_ptr<Connection> Begin(const Target& target, const std::string& source,
                                           bool reads);
  // Resets the connection, so that its port is free at once.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects and shakes hands as far as that goes; to be called until the connection is open or
  // closed, whenever the socket is ready for what it wants.
  Progress Advance();

  // Both return the number of bytes, 0 if there is nothing to do now, or -1 if the connection is
  // closed. Send takes the same bytes again until they have been sent, from where it stopped.
  ssize_t Send(std::string_view bytes);
  ssize_t Receive(char* buffer, size_t size);

  int descriptor() const { return descriptor_; }

 private:
  explicit Connection(int descriptor) : descriptor_(descriptor), tls_(nullptr, SSL_free) {}

  Progress ProgressOf(int result) const;

  const int descriptor_;
  bool connected_ = false;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
};

}  // namespace attendant::flood
