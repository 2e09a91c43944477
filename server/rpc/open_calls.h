// OpenCalls, which cuts connections that start calls faster than these end.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

struct OpenCallLimits {
  int64_t of_all = 0;
  int64_t of_connection = 0;  // that each may have whatever others have
};

// A caller may have as many calls open on a connection as SETTINGS_MAX_CONCURRENT_STREAMS of HTTP/2
// says. One that it has reset does not count there any more, but holds some 20 KiB until it has
// ended here. gRPC 1.51 reads a connection for as long as it finds something, and hands over the
// calls that came only then. So without a bound, a caller that starts and resets calls without a
// pause ("rapid reset", CVE-2023-44487) fills the memory of the process.
//
// gRPC asks for the context of a call when it has read its headers, on the thread that has read
// them, and gives it back when nothing of the call is left. A connection that has more calls than
// `of_connection`, and more than all connections together leave free of `of_all`, is cut.
// Thread-safe.
class OpenCalls final : public grpc::ContextAllocator {
 public:
  // `on_cut` is called for each connection that is cut, on any thread.
  OpenCalls(OpenCallLimits limits, std::function<void()> on_cut)
      : limits_(limits), on_cut_(std::move(on_cut)) {}

  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext() override;
  void Release(grpc::CallbackServerContext* call) override;
  void Release(grpc::GenericCallbackServerContext* call) override;

 private:
  struct Connection {
    int64_t calls = 0;
    bool cut = false;
  };

  // Returns whether the connection is to be cut now.
  bool Add(const grpc::CallbackServerContext* call, std::optional<uint64_t> connection);
  // Returns whether the context was made here.
  bool Remove(const grpc::CallbackServerContext* call);

  const OpenCallLimits limits_;
  const std::function<void()> on_cut_;
  absl::Mutex mutex_;
  // Not Abseil's maps, which break if they find no memory to grow.
  std::map<const grpc::CallbackServerContext*, std::optional<uint64_t>> connection_of_
      ABSL_GUARDED_BY(mutex_);  // none: not known
  std::map<std::optional<uint64_t>, Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
