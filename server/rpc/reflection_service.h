// Server reflection for the services of this process.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace attendant::server {

// Answers from the descriptors that are linked into the process. A stream takes no thread while it
// is idle. Reflection takes no slots, so that it also works on a server that is full; therefore it
// has bounds of its own.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  // gRPC holds a message until it is whole, and only then can its size be seen. So there are few
  // streams, which together hold at most this many of the largest requests of the server.
  static constexpr int kMaxStreams = 4;
  static constexpr size_t kMaxRequestBytes = 4096;

  // `services` are the full names to list. A stream that lasts longer than `max_time` is ended.
  explicit ReflectionService(std::vector<std::string> services,
                             absl::Duration max_time = absl::Seconds(30));

  // Ends the call at its headers with RESOURCE_EXHAUSTED if too many streams are open.
  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* call) override;

 private:
  const std::vector<std::string> services_;
  const absl::Duration max_time_;
  std::atomic<int> streams_ = 0;
};

}  // namespace attendant::server
