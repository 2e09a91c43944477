#include "server/http/http_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

// Connections that have arrived but are not accepted yet take no descriptor.
constexpr int kBacklog = 1024;

// Returns a socket that listens, or -1 with errno set.
int TryListen(const addrinfo& target) {
  const int descriptor =
      socket(target.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, target.ai_protocol);
  if (descriptor < 0) return -1;
  const int yes = 1, no = 0;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (target.ai_family == AF_INET6) {  // "::" takes IPv4 too, whatever the system's default is
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (bind(descriptor, target.ai_addr, target.ai_addrlen) == 0 &&
      listen(descriptor, kBacklog) == 0) {
    return descriptor;
  }
  const int problem = errno;
  close(descriptor);
  errno = problem;
  return -1;
}

template <typename Address>
Address As(const sockaddr_storage& storage) {
  Address address;
  std::memcpy(&address, &storage, sizeof address);
  return address;
}

std::string Bytes(const void* begin, size_t size) {
  return std::string(static_cast<const char*>(begin), size);
}

}  // namespace

std::string AcceptedConnection::address() const {
  if (peer.ss_family == AF_INET) {
    const auto v4 = As<sockaddr_in>(peer);
    return Bytes(&v4.sin_addr, sizeof v4.sin_addr);
  }
  const auto v6 = As<sockaddr_in6>(peer);
  constexpr size_t kNetwork = 8, kMappedV4 = 12;
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return Bytes(&v6.sin6_addr, kNetwork);
  return Bytes(v6.sin6_addr.s6_addr + kMappedV4, sizeof(in_addr));
}

std::string AcceptedConnection::name() const {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&peer), peer_size, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  return peer.ss_family == AF_INET ? absl::StrCat("ipv4:", host, ":", port)
                                   : absl::StrCat("ipv6:[", host, "]:", port);
}

absl::StatusOr<HttpListener> HttpListener::Open(const std::string& address, int port) {
  const auto cannot = [&](const char* reason) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, " port ", port, " for HTTP: ", reason));
  };
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return cannot(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> targets(found, freeaddrinfo);
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    const int descriptor = TryListen(*target);
    if (descriptor >= 0) return HttpListener(descriptor);
  }
  return cannot(std::strerror(errno));
}

HttpListener::HttpListener(HttpListener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

HttpListener::~HttpListener() {
  if (descriptor_ >= 0) close(descriptor_);
}

int HttpListener::port() const {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&storage), &size);
  // The port is at the same place in the addresses of both families.
  return ntohs(As<sockaddr_in>(storage).sin_port);
}

std::optional<AcceptedConnection> HttpListener::Accept() {
  AcceptedConnection accepted;
  accepted.descriptor = accept4(descriptor_, reinterpret_cast<sockaddr*>(&accepted.peer),
                                &accepted.peer_size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted.descriptor < 0) return std::nullopt;
  return accepted;
}

void HttpListener::Stop() { shutdown(descriptor_, SHUT_RDWR); }

}  // namespace attendant::server
