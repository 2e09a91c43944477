#include "server/rpc/call/small_message.h"

#include <grpcpp/support/slice.h>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

constexpr size_t kMostBytes = 4096;

}  // namespace

absl::Status ParseSmallMessage(const grpc::ByteBuffer& bytes, const SmallMessageNames& names,
                               google::protobuf::Message& message) {
  if (bytes.Length() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(names.kind, " has at most ", kMostBytes,
                                                   " bytes, got ", bytes.Length()));
  }
  grpc::Slice slice;
  if (!bytes.DumpToSingleSlice(&slice).ok() ||
      !message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.message, " is not a ", message.GetDescriptor()->name()));
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
