// The connection that a thread has read last.
#pragma once

#include <cstdint>
#include <optional>

namespace attendant::server {

// gRPC parses what it has read on the thread that has read it, and tells nobody which connection
// that is. So this library has a recvmsg of its own, which notes the socket for the thread and then
// calls that of libc; the linker prefers it for the whole program, with its shared libraries.

// Returns a number that no other connection has or will have; none if this thread has read nothing
// by recvmsg, or the last connection is closed.
std::optional<uint64_t> LastReadConnection();

// Closes that connection at once for both ends, and drops what it has received and nobody has read.
// To be called by code that its reader calls, so that it is not closed meanwhile.
void CutLastReadConnection();

}  // namespace attendant::server
