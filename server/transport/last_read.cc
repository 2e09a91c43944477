#include "server/transport/last_read.h"

#include <dlfcn.h>
#include <sys/socket.h>

namespace attendant::server {
namespace {

thread_local int last_read = -1;

}  // namespace

std::optional<uint64_t> LastReadConnection() {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(last_read, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

void CutLastReadConnection() {
  // Resets the connection when all of its descriptors are closed. Else the other end could wait for
  // a window that never opens again.
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(last_read, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  shutdown(last_read, SHUT_RDWR);
  // Else its reader would read on to the end of that.
  char dropped[1 << 16];
  while (recv(last_read, dropped, sizeof dropped, MSG_DONTWAIT) > 0) continue;
}

}  // namespace attendant::server

extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  using Function = ssize_t (*)(int, msghdr*, int);
  static const auto of_libc = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "recvmsg"));
  attendant::server::last_read = socket;
  return of_libc(socket, message, flags);
}
