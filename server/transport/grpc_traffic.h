// The traffic of gRPC's connections, metered before gRPC sees it.
#pragma once

#include <atomic>
#include <memory>

namespace attendant::server {

// gRPC lets nobody see what a connection has received before it parses that itself. So this library
// has a recvmsg, a sendmsg and an SSL_read of its own, which call those of libc and OpenSSL; the
// linker prefers them for the whole program, with its shared libraries.

// Meters the frames of a connection (frame_meter.h) from now on. To be called before gRPC gets the
// connection, on the thread that hands it over. A connection that costs more than it brings is cut:
// what gRPC reads of it next is its end. Returns what becomes true then.
std::shared_ptr<const std::atomic<bool>> MeterTraffic(int socket, bool encrypted);

}  // namespace attendant::server
