#include "server/rpc/open_calls.h"

#include <memory>

#include "server/execution/fault.h"
#include "server/transport/last_read.h"

namespace attendant::server {

grpc::GenericCallbackServerContext* OpenCalls::NewGenericCallbackServerContext() {
  grpc::GenericCallbackServerContext* call = nullptr;
  Guarded([&] {
    auto made = std::make_unique<grpc::GenericCallbackServerContext>();
    const bool cut = Add(made.get(), LastReadConnection());
    call = made.release();
    if (!cut) return;
    CutLastReadConnection();
    on_cut_();
  }).IgnoreError();
  return call;  // for null, gRPC takes a context of its own
}

// The way in which gRPC 1.51 gives back the contexts of generic calls, its own ones among them.
void OpenCalls::Release(grpc::CallbackServerContext* call) {
  if (Remove(call)) delete call;
}

void OpenCalls::Release(grpc::GenericCallbackServerContext* call) {
  Release(static_cast<grpc::CallbackServerContext*>(call));
}

bool OpenCalls::Add(const grpc::CallbackServerContext* call, std::optional<uint64_t> connection) {
  absl::MutexLock lock(&mutex_);
  decltype(connection_of_) added;  // first, as there may be no memory for it
  added.emplace(call, connection);
  Connection& counted = connections_[connection];
  connection_of_.merge(added);
  ++counted.calls;
  const int64_t free = limits_.of_all - static_cast<int64_t>(connection_of_.size());
  if (!connection || counted.cut) return false;
  if (counted.calls <= limits_.of_connection || counted.calls <= free) return false;
  counted.cut = true;
  return true;
}

bool OpenCalls::Remove(const grpc::CallbackServerContext* call) {
  absl::MutexLock lock(&mutex_);
  const auto connection = connection_of_.find(call);
  if (connection == connection_of_.end()) return false;
  const auto counted = connections_.find(connection->second);
  if (--counted->second.calls == 0) connections_.erase(counted);
  connection_of_.erase(connection);
  return true;
}

}  // namespace attendant::server
