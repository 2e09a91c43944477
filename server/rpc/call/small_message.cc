#include "server/rpc/call/small_message.h"

#include <grpcpp/support/slice.h>

#include "absl/strings/str_cat.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr size_t kMostBytes = 4096;

}  // namespace

absl::Status ParseSmallMessage(const grpc::ByteBuffer& bytes, const char* name,
                               google::protobuf::Message& message) {
  if (bytes.Length() > kMostBytes) {
    return InvalidField(name, absl::StrCat("at most ", kMostBytes, " bytes"),
                        absl::StrCat(bytes.Length()));
  }
  grpc::Slice slice;
  if (!bytes.DumpToSingleSlice(&slice).ok() ||
      !message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": not a valid ", message.GetDescriptor()->name()));
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
