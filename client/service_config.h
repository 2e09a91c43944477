// The gRPC service config with which clients do not notice that one of several servers restarts.
#pragma once

#include <string>

namespace attendant::client {

// Who finds out which servers serve. A proxy stands for all of its servers: a health check through
// it asks one of them, and if that one stops, gRPC sends the proxy no more calls.
enum class HealthChecks { kOfClient, kOfProxy };

// Returns it as JSON, for the channel argument grpc.service_config of any gRPC client. Calls go to
// the servers of an address in turn, as long as the client's health checks of them say that they
// serve. A call that a server refuses with UNAVAILABLE is tried again if it may run twice: streams,
// PutMemory and DropMemory, which concern what one server keeps, are not.
//
// gRPC tries a call again only if it still has the whole request, of which it keeps 256 KiB by
// default: clients with larger requests also have to raise grpc.per_rpc_retry_buffer_size.
std::string ServiceConfig(HealthChecks checks = HealthChecks::kOfClient);

}  // namespace attendant::client
