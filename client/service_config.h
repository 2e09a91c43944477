// The gRPC service config with which clients do not notice that one of several servers restarts.
#pragma once

namespace attendant::client {

// Returns it as JSON, for the channel argument grpc.service_config of any gRPC client. Calls go to
// the servers of an address in turn, as long as their health checks say that they serve. A call
// that a server refuses with UNAVAILABLE is tried again if it may run twice: streams, PutMemory and
// DropMemory, which concern what one server keeps, are not.
//
// gRPC tries a call again only if it still has the whole request, of which it keeps 256 KiB by
// default: clients with larger requests also have to raise grpc.per_rpc_retry_buffer_size.
const char* ServiceConfig();

}  // namespace attendant::client
