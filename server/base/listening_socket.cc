#include "server/base/listening_socket.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace attendant::server {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";
// Connections that have arrived but are not accepted yet take no descriptor.
constexpr int kBacklog = 1024;
constexpr mode_t kUnixSocketMode = 0660;

absl::Status Problem(absl::string_view reason) { return absl::UnavailableError(reason); }
absl::Status ProblemOfErrno() { return Problem(std::strerror(errno)); }

std::string NameBeforeListening(const std::string& path) { return path + ".new"; }

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// OK if no file is at `path`, or the socket of a server that has ended.
absl::Status CheckPath(const std::string& path) {
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ProblemOfErrno();
  }
  if (!S_ISSOCK(file.st_mode)) return Problem("the path exists and is not a socket");
  const int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (caller < 0) return ProblemOfErrno();
  const sockaddr_un address = UnixAddress(path);
  const int result = connect(caller, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int problem = result == 0 ? 0 : errno;
  close(caller);
  if (problem == ECONNREFUSED) return absl::OkStatus();
  return Problem(std::strerror(problem == 0 || problem == EAGAIN ? EADDRINUSE : problem));
}

void SetPort(sockaddr& address, int port) {
  const auto in_network_order = htons(static_cast<uint16_t>(port));
  if (address.sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = in_network_order;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = in_network_order;
  }
}

using Targets = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Targets> Resolve(const std::string& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), "0", &hints, &found);
  if (error != 0) return Problem(gai_strerror(error));
  return Targets(found, freeaddrinfo);
}

}  // namespace

bool IsUnixAddress(absl::string_view address) { return absl::StartsWith(address, kUnixPrefix); }

absl::StatusOr<std::vector<std::unique_ptr<ListeningSocket>>> ListeningSocket::Bind(
    const std::string& address, int port) {
  std::vector<std::unique_ptr<ListeningSocket>> sockets;
  if (IsUnixAddress(address)) {
    ASSIGN_OR_RETURN(auto bound, BindUnix(std::string(absl::StripPrefix(address, kUnixPrefix))));
    sockets.push_back(std::move(bound));
    return sockets;
  }
  ASSIGN_OR_RETURN(const Targets targets, Resolve(address));
  for (const addrinfo* target = targets.get(); target != nullptr; target = target->ai_next) {
    ASSIGN_OR_RETURN(auto bound, BindTcp(*target, sockets.empty() ? port : sockets[0]->port()));
    sockets.push_back(std::move(bound));
  }
  return sockets;
}

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::BindFirst(
    const std::string& address, int port) {
  ASSIGN_OR_RETURN(const Targets targets, Resolve(address));
  absl::StatusOr<std::unique_ptr<ListeningSocket>> bound = BindTcp(*targets, port);
  for (const addrinfo* next = targets->ai_next; !bound.ok() && next != nullptr;
       next = next->ai_next) {
    bound = BindTcp(*next, port);
  }
  return bound;
}

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::BindTcp(const addrinfo& target,
                                                                          int port) {
  const int descriptor = ::socket(target.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return ProblemOfErrno();
  std::unique_ptr<ListeningSocket> socket(new ListeningSocket(descriptor));
  const int yes = 1, no = 0;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (target.ai_family == AF_INET6) {
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  SetPort(*target.ai_addr, port);
  if (bind(descriptor, target.ai_addr, target.ai_addrlen) != 0) return ProblemOfErrno();
  return socket;
}

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::BindUnix(
    const std::string& path) {
  const std::string unfinished = NameBeforeListening(path);
  if (path.empty()) return Problem("the path is empty");
  if (unfinished.size() >= sizeof sockaddr_un::sun_path) {
    return Problem(
        absl::StrCat("expected a path of at most ",
                     sizeof sockaddr_un::sun_path - 1 - (unfinished.size() - path.size()),
                     " bytes; got ", path.size()));
  }
  RETURN_IF_ERROR(CheckPath(path));
  RETURN_IF_ERROR(CheckPath(unfinished));
  unlink(unfinished.c_str());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return ProblemOfErrno();
  std::unique_ptr<ListeningSocket> socket(new ListeningSocket(descriptor));
  const sockaddr_un address = UnixAddress(unfinished);
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ProblemOfErrno();
  }
  socket->path_ = path;
  if (lstat(unfinished.c_str(), &socket->file_) != 0 ||
      chmod(unfinished.c_str(), kUnixSocketMode) != 0) {
    return ProblemOfErrno();
  }
  return socket;
}

ListeningSocket::~ListeningSocket() {
  close(descriptor_);
  if (!is_unix()) return;
  for (const std::string& name : {NameBeforeListening(path_), path_}) {
    struct stat file;
    if (lstat(name.c_str(), &file) == 0 && file.st_dev == file_.st_dev &&
        file.st_ino == file_.st_ino) {
      unlink(name.c_str());
    }
  }
}

absl::Status ListeningSocket::Listen() {
  if (is_unix()) {
    // Another server may have started in the meantime.
    RETURN_IF_ERROR(CheckPath(path_));
  }
  if (listen(descriptor_, kBacklog) != 0) return ProblemOfErrno();
  if (is_unix() && std::rename(NameBeforeListening(path_).c_str(), path_.c_str()) != 0) {
    return ProblemOfErrno();
  }
  return absl::OkStatus();
}

int ListeningSocket::port() const {
  if (is_unix()) return 0;
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace attendant::server
