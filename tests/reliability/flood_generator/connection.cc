#include "tests/reliability/flood_generator/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace attendant::flood {
namespace {

constexpr int kSendBufferBytes = 64 << 10;

void SetOption(int descriptor, int level, int option, int value) {
  setsockopt(descriptor, level, option, &value, sizeof(value));
}

sockaddr_in Ipv4(const std::string& address, int port) {
  sockaddr_in ipv4 = {};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &ipv4.sin_addr) != 1) {
    throw std::runtime_error("source address: expected an IPv4 address; got " + address);
  }
  return ipv4;
}

bool Began(int result) { return result == 0 || errno == EINPROGRESS; }

bool ConnectByTcp(int descriptor, const std::string& source, int port) {
  // The kernel picks the port when it knows both ends, so that addresses do not run out of ports.
  SetOption(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  SetOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  const linger reset = {1, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  const sockaddr_in from = Ipv4(source, 0);
  const sockaddr_in to = Ipv4("127.0.0.1", port);
  return bind(descriptor, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) == 0 &&
         Began(connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)));
}

bool ConnectByPath(int descriptor, const std::string& path) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof(to.sun_path)) throw std::runtime_error(path + ": path too long");
  std::memcpy(to.sun_path, path.data(), path.size());
  return Began(connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)));
}

}  // namespace

std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> MakeTlsContext() {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                            SSL_CTX_free);
  constexpr unsigned char kProtocols[] = {2, 'h', '2'};
  if (context == nullptr ||
      SSL_CTX_set_alpn_protos(context.get(), kProtocols, sizeof(kProtocols)) != 0) {
    throw std::runtime_error("OpenSSL makes no context");
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

std::unique_ptr<Connection> Connection::Begin(const Target& target, const std::string& source,
                                              bool reads) {
  const bool tcp = target.unix_path.empty();
  const int descriptor =
      socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
  std::unique_ptr<Connection> connection(new Connection(descriptor));
  // Otherwise megabytes that the server has never looked at would count as sent.
  SetOption(descriptor, SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  if (!reads) SetOption(descriptor, SOL_SOCKET, SO_RCVBUF, 1);  // the kernel makes it its least
  if (tcp ? !ConnectByTcp(descriptor, source, target.port)
          : !ConnectByPath(descriptor, target.unix_path)) {
    return nullptr;
  }
  if (target.tls != nullptr) {
    connection->tls_.reset(SSL_new(target.tls));
    if (connection->tls_ == nullptr || SSL_set_fd(connection->tls_.get(), descriptor) != 1) {
      throw std::runtime_error("OpenSSL makes no connection");
    }
  }
  return connection;
}

Connection::~Connection() { close(descriptor_); }

Connection::Progress Connection::Advance() {
  if (!connected_) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Progress::kClosed;
    connected_ = true;
  }
  if (tls_ == nullptr) return Progress::kOpen;
  ERR_clear_error();
  return ProgressOf(SSL_connect(tls_.get()));
}

ssize_t Connection::Send(std::string_view bytes) {
  if (tls_ == nullptr) {
    const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
  }
  ERR_clear_error();
  const int sent = SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()));
  if (sent > 0) return sent;
  return ProgressOf(sent) == Progress::kClosed ? -1 : 0;
}

ssize_t Connection::Receive(char* buffer, size_t size) {
  if (tls_ == nullptr) {
    const ssize_t received = recv(descriptor_, buffer, size, 0);
    if (received == 0) return -1;
    return received < 0 && errno == EAGAIN ? 0 : received;
  }
  ERR_clear_error();
  const int received = SSL_read(tls_.get(), buffer, static_cast<int>(size));
  if (received > 0) return received;
  return ProgressOf(received) == Progress::kClosed ? -1 : 0;
}

Connection::Progress Connection::ProgressOf(int result) const {
  if (result > 0) return Progress::kOpen;
  const int error = SSL_get_error(tls_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return Progress::kWantsRead;
  return error == SSL_ERROR_WANT_WRITE ? Progress::kWantsWrite : Progress::kClosed;
}

}  // namespace attendant::flood
