#include "server/rpc/open_calls.h"

#include <memory>
#include <optional>

#include "server/execution/fault.h"
#include "server/transport/last_read.h"

namespace attendant::server {

grpc::GenericCallbackServerContext* OpenCalls::NewGenericCallbackServerContext() {
  grpc::GenericCallbackServerContext* call = nullptr;
  Guarded([&] {
    auto made = std::make_unique<grpc::GenericCallbackServerContext>();
    const std::optional<uint64_t> connection = LastReadConnection();
    const bool cut = connection && Add(made.get(), *connection);
    call = made.release();
    if (!cut) return;
    CutLastReadConnection();
    on_cut_();
  }).IgnoreError();
  return call;  // of null, gRPC makes a context of its own, which is not counted
}

// The way in which gRPC 1.51 gives back the contexts of generic calls.
void OpenCalls::Release(grpc::CallbackServerContext* call) {
  Remove(call);
  delete call;
}

void OpenCalls::Release(grpc::GenericCallbackServerContext* call) {
  Release(static_cast<grpc::CallbackServerContext*>(call));
}

bool OpenCalls::Add(const grpc::CallbackServerContext* call, uint64_t connection) {
  absl::MutexLock lock(&mutex_);
  std::map<const grpc::CallbackServerContext*, uint64_t> added;  // first, as there may be no memory
  added.emplace(call, connection);
  Connection& counted = connections_[connection];
  connection_of_.merge(added);
  ++counted.calls;
  const int64_t free = limits_.of_all - static_cast<int64_t>(connection_of_.size());
  if (counted.cut || counted.calls <= limits_.of_connection || counted.calls <= free) return false;
  counted.cut = true;
  return true;
}

void OpenCalls::Remove(const grpc::CallbackServerContext* call) {
  absl::MutexLock lock(&mutex_);
  const auto connection = connection_of_.find(call);
  if (connection == connection_of_.end()) return;
  const auto counted = connections_.find(connection->second);
  if (--counted->second.calls == 0) connections_.erase(counted);
  connection_of_.erase(connection);
}

}  // namespace attendant::server
