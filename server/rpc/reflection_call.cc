#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/status.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/metrics/refusal.h"
#include "server/rpc/call/small_message.h"
#include "server/rpc/calls.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflection;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

const char* const kServices[] = {v1::EncoderService::service_full_name(),
                                 inference::GRPCInferenceService::service_full_name(),
                                 "grpc.health.v1.Health", ServerReflection::service_full_name()};

void SetNotFound(ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message("the server has no such descriptor");
}

void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
              ServerReflectionResponse& response) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), added, response);
}

void AnswerFile(const FileDescriptor* file, ServerReflectionResponse& response) {
  if (file == nullptr) return SetNotFound(response);
  std::set<const FileDescriptor*> added;
  AddFiles(*file, added, response);
}

void AnswerExtension(const std::string& type_name, int number, ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* type = pool.FindMessageTypeByName(type_name);
  const FieldDescriptor* extension =
      type == nullptr ? nullptr : pool.FindExtensionByNumber(type, number);
  AnswerFile(extension == nullptr ? nullptr : extension->file(), response);
}

void AnswerExtensions(const std::string& type_name, ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* type = pool.FindMessageTypeByName(type_name);
  if (type == nullptr) return SetNotFound(response);
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(type, &extensions);
  auto& answer = *response.mutable_all_extension_numbers_response();
  answer.set_base_type_name(type_name);
  for (const FieldDescriptor* extension : extensions) {
    answer.add_extension_number(extension->number());
  }
}

// Looks up the descriptors linked into the process.
ServerReflectionResponse AnswerReflection(const ServerReflectionRequest& request) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      AnswerFile(pool.FindFileByName(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kFileContainingExtension:
      AnswerExtension(request.file_containing_extension().containing_type(),
                      request.file_containing_extension().extension_number(), response);
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      AnswerExtensions(request.all_extension_numbers_of_type(), response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const char* service : kServices) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message(
          "message_request: expected a request; got none");
  }
  return response;
}

// Tools ask a few questions and disconnect, and gRPC delivers only complete messages. Reflection
// streams are therefore few, the time for a message runs from the start, and received bytes are
// charged as in a call with a job. Otherwise they hold the same as an EncodeStream: a place among
// the streams while open, and a slot from the arrival of a request until its response is sent.
class ReflectionCall final : public Call {
 public:
  explicit ReflectionCall(CallArgs entry)
      : Call(std::move(entry)), request_recorder_(*std::exchange(account_, std::nullopt)) {}

 private:
  absl::Status Begin() override {
    const Budget::Answer answer =
        context_.admission.reflection_streams().TryTake({peer_, 1}, reflection_place_);
    if (answer != Budget::Answer::kTaken) {
      const bool share = answer == Budget::Answer::kShare;
      return Refused(share ? Refusal::kPeerShare : Refusal::kStreams,
                     "too many reflection streams are open");
    }
    Read();
    return absl::OkStatus();
  }

  absl::Status OnMessage(grpc::ByteBuffer message, Budget::Reservation memory) override {
    RequestRecorder account = request_recorder_.ForItem(context_.clock.Now());
    const absl::Status status = Answer(message, std::move(memory));
    account.Report(status, context_);
    return status;
  }

  absl::Status OnNoMessage() override {
    End({absl::OkStatus()});
    return absl::OkStatus();
  }

  absl::Status OnWritten(bool ok) override {
    slot_.Release();
    if (!ok) return LostCallerError(call_, context_);
    Read();
    return absl::OkStatus();
  }

  void OnEnd() override {
    slot_.Release();
    reflection_place_.Release();
  }

  void Read() {
    Budget::Reservation memory;
    {
      absl::MutexLock lock(&mutex_);
      memory = std::move(memory_);
    }
    memory.Change(RecentSize::kLeast, HeldFor::kReceiving);
    Receive(std::move(memory));
    // A Drain before the first read had no effect.
    if (context_.admission.closed()) Drain();
  }

  absl::Status Answer(const grpc::ByteBuffer& message, Budget::Reservation memory) {
    ServerReflectionRequest request;
    absl::Status status = ParseSmallMessage(message, "the message", request);
    if (status.ok()) status = context_.admission.TakeSlot(peer_, slot_);
    if (!status.ok()) return status;
    grpc::ByteBuffer response = SerializeResponse(AnswerReflection(request));
    // Descriptors are small; if there is no memory even for them, the permit stays unchanged.
    memory.Change(static_cast<int64_t>(response.Length()), HeldFor::kAnswer);
    absl::MutexLock lock(&mutex_);
    if (ended_) return absl::OkStatus();
    memory_ = std::move(memory);
    response_.Swap(&response);
    LimitSending();
    StartWrite(&response_);
    return absl::OkStatus();
  }

  const RequestRecorder request_recorder_;  // from which each request has one
  // Only reactions use these, one at a time.
  Budget::Reservation reflection_place_;  // among the streams of reflection
  Budget::Reservation slot_;              // while a request is answered
};

}  // namespace

std::shared_ptr<Call> NewReflectionCall(CallArgs entry) {
  return std::make_shared<ReflectionCall>(std::move(entry));
}

}  // namespace attendant::server
