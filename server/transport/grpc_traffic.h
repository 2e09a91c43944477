// Meters the traffic of gRPC's connections before gRPC sees it.
#pragma once

#include <memory>
#include <string>

#include "server/transport/metered_connection.h"

namespace attendant::server {

// gRPC has no hook for received bytes. This library therefore defines recvmsg, sendmsg, SSL_read,
// SSL_write and getpeername, which wrap the functions of libc and OpenSSL. The linker prefers these
// definitions for the whole program, including shared libraries.

// Starts metering a connection. Call before handing it to gRPC, on the same thread. Cuts the
// connection when MeteredConnection says so: gRPC's next read then returns end of file. An empty
// `name` means a Unix socket, which gets a name that gRPC reports as its peer:
// "unix-abstract:NAME".
std::shared_ptr<MeteredConnection> MeterTraffic(int socket, bool encrypted, std::string name);

// Returns the metered connection of that name; if it has been closed, one that receives nothing.
std::shared_ptr<MeteredConnection> FindConnection(const std::string& name);

// Call once the connection is closed.
void ForgetConnection(MeteredConnection& connection);

}  // namespace attendant::server
