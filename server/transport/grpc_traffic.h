// The traffic of gRPC's connections, metered before gRPC sees it.
#pragma once

#include <atomic>
#include <memory>

namespace attendant::server {

// gRPC has no hook for received bytes. This library therefore defines recvmsg, sendmsg and
// SSL_read, which wrap the functions of libc and OpenSSL. The linker prefers these definitions for
// the whole program, including shared libraries.

// Meters the frames of a connection (frame_meter.h) from now on. To be called before the connection
// is handed to gRPC, on the same thread. Cuts the connection on a flood: gRPC's next read then
// returns end of file. Returns a flag that becomes true when the connection is cut.
std::shared_ptr<const std::atomic<bool>> MeterTraffic(int socket, bool encrypted);

}  // namespace attendant::server
