// The gRPC service config that keeps clients working while one of several servers restarts.
#pragma once

#include <string>

namespace attendant::client {

// The component that checks the health of servers. A health check through a proxy reaches only one
// of its servers; when that server stops, gRPC would stop calling the proxy.
enum class HealthChecks { kOfClient, kOfProxy };

// Returns the config as JSON, for the channel argument grpc.service_config of any gRPC client.
// Calls go to the healthy servers of an address in turn. A call refused with UNAVAILABLE is retried
// if it may run twice, which excludes streams, and PutMemory and DropMemory, whose memories belong
// to one server.
//
// gRPC retries a call only if it has kept the whole request, and it keeps 256 KiB by default:
// clients with larger requests must also raise grpc.per_rpc_retry_buffer_size.
std::string ServiceConfig(HealthChecks checks = HealthChecks::kOfClient);

}  // namespace attendant::client
