#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "attendant/v1/encoder_service.pb.h"
#include "inference/inference_service.pb.h"
#include "server/execution/prepare_request.h"
#include "server/inference/infer.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/server/support/service_parts.h"
#include "tests/server/wire/agreement.h"
#include "tests/server/wire/random_wire.h"

namespace attendant {
namespace {

constexpr int kMethods = 5;

// An input whose first byte has been read.
struct Choice {
  int method;
  std::string message;
  grpc::ByteBuffer slices;  // the message
};

Choice Choose(absl::string_view input) {
  static const google::protobuf::LogSilencer silencer;
  const auto first = static_cast<uint8_t>(input.empty() ? 0 : input[0]);
  input.remove_prefix(input.empty() ? 0 : 1);
  std::string message(input);
  grpc::ByteBuffer slices = server::InSlicesOf(message, 1 + first / kMethods);
  return {first % kMethods, std::move(message), slices};
}

absl::Status ReadStreamItem(const grpc::ByteBuffer& slices, const server::ServiceContext& context) {
  const absl::StatusOr<server::StreamItem> item = ReceiveItem(slices, context);
  if (!item.ok()) return item.status();
  const uint64_t number = item->request.sequence();
  const auto sequence = number == 0 ? nullptr : std::make_shared<server::StreamSequence>(number);
  return PrepareItem(*item, "", sequence, context).status();
}

}  // namespace

std::string FuzzRequestCodec(absl::string_view input) {
  static const google::protobuf::Message* const kTypes[] = {
      &v1::AttendRequest::default_instance(), &v1::EncodeRequest::default_instance(),
      &v1::PutMemoryRequest::default_instance(), &v1::EncodeStreamRequest::default_instance(),
      &inference::ModelInferRequest::default_instance()};
  static_assert(std::size(kTypes) == kMethods);
  const Choice choice = Choose(input);
  return server::FindDisagreement(*kTypes[choice.method], choice.message, choice.slices);
}

std::string FuzzRequest(absl::string_view input) {
  static auto& parts = *new server::ServiceParts(absl::Milliseconds(1));
  static const auto& context = *new server::ServiceContext(parts.Context({}));
  const Choice choice = Choose(input);
  absl::Status status;
  switch (choice.method) {
    case 0:
      status = PrepareNow(PrepareAttend(choice.slices, context)).status();
      break;
    case 1:
      status = PrepareNow(PrepareEncode(choice.slices, context)).status();
      break;
    case 2:
      status = PrepareNow(PreparePutMemory(choice.slices, context)).status();
      break;
    case 3:
      status = ReadStreamItem(choice.slices, context);
      break;
    default:
      status = PrepareNow(PrepareInfer(choice.slices, context)).status();
  }
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
      return "";
    default:
      return "unexpected status: " + status.ToString();
  }
}

}  // namespace attendant
