#include "client/client.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "client/execution_reader.h"
#include "client/grpc_encode_stream.h"
#include "client/grpc_load_stream.h"
#include "client/prepared_request_wire.h"
#include "client/proto_conversion.h"

namespace attendant::client {
namespace {

// The messages of grpc.health.v1, replaced by well-known types with the same wire format (one
// string, one enum), so that an application can link its own health.proto alongside this library.
using HealthRequest = google::protobuf::StringValue;
using HealthResponse = google::protobuf::Int32Value;
using HealthStub = grpc::TemplatedGenericStub<HealthRequest, HealthResponse>;

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kAttend[] = "/attendant.v1.EncoderService/Attend";
constexpr char kEncode[] = "/attendant.v1.EncoderService/Encode";

// The objects that a call uses until it has ended.
template <typename Request, typename Response>
struct PendingCall {
  grpc::ClientContext context;
  Request request;
  Response response;
};

void SetDeadline(const CallOptions& call, grpc::ClientContext& context) {
  if (call.timeout == absl::InfiniteDuration()) return;
  context.set_deadline(absl::ToChronoTime(absl::Now() + call.timeout));
}

// Calls a blocking method of the generated stub.
template <typename Request, typename Response>
absl::Status Invoke(v1::EncoderService::Stub& stub,
                    grpc::Status (v1::EncoderService::Stub::*method)(grpc::ClientContext*,
                                                                     const Request&, Response*),
                    const Request& request, const CallOptions& call, Response& response) {
  grpc::ClientContext context;
  SetDeadline(call, context);
  return FromGrpc((stub.*method)(&context, request, &response));
}

template <typename Message>
grpc::ByteBuffer Serialize(const Message& message) {
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own_buffer);
  return buffer;
}

}  // namespace

PreparedRequest PreparedRequest::Attend(AttendRequest request) {
  PreparedRequest prepared;
  prepared.wire_ =
      std::make_shared<const Wire>(Wire{kAttend, v1::AttendResponse::kExecutionFieldNumber,
                                        Serialize<v1::AttendRequest>(ToProto(std::move(request)))});
  return prepared;
}

PreparedRequest PreparedRequest::Encode(EncodeRequest request) {
  PreparedRequest prepared;
  prepared.wire_ =
      std::make_shared<const Wire>(Wire{kEncode, v1::EncodeResponse::kExecutionFieldNumber,
                                        Serialize<v1::EncodeRequest>(ToProto(std::move(request)))});
  return prepared;
}

int64_t PreparedRequest::bytes() const { return static_cast<int64_t>(wire_->message.Length()); }
const PreparedRequest::Wire& PreparedRequest::wire() const { return *wire_; }

struct Client::State {
  explicit State(const std::shared_ptr<grpc::Channel>& channel)
      : stub(channel), generic_stub(channel), health_stub(channel) {}

  // Stubs are thread-safe, but their methods are not const.
  mutable v1::EncoderService::Stub stub;
  mutable grpc::GenericStub generic_stub;
  mutable HealthStub health_stub;
};

Client::Client(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Client Client::Connect(const std::string& address, const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_message_bytes);
  if (options.own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return Client(std::make_shared<const State>(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
}

absl::StatusOr<AttendResult> Client::Attend(AttendRequest request, const CallOptions& call) const {
  v1::AttendResponse response;
  const absl::Status status = Invoke(state_->stub, &v1::EncoderService::Stub::Attend,
                                     ToProto(std::move(request)), call, response);
  if (!status.ok()) return status;
  return FromProto(std::move(response));
}

absl::StatusOr<EncodeResult> Client::Encode(EncodeRequest request, const CallOptions& call) const {
  v1::EncodeResponse response;
  const absl::Status status = Invoke(state_->stub, &v1::EncoderService::Stub::Encode,
                                     ToProto(std::move(request)), call, response);
  if (!status.ok()) return status;
  return FromProto(std::move(response));
}

absl::StatusOr<RegisteredMemory> Client::PutMemory(PutMemoryRequest request,
                                                   const CallOptions& call) const {
  v1::PutMemoryResponse response;
  const absl::Status status = Invoke(state_->stub, &v1::EncoderService::Stub::PutMemory,
                                     ToProto(std::move(request)), call, response);
  if (!status.ok()) return status;
  return FromProto(std::move(response));
}

absl::StatusOr<int64_t> Client::DropMemory(const std::string& handle,
                                           const CallOptions& call) const {
  v1::DropMemoryRequest request;
  request.set_handle(handle);
  v1::DropMemoryResponse response;
  const absl::Status status =
      Invoke(state_->stub, &v1::EncoderService::Stub::DropMemory, request, call, response);
  if (!status.ok()) return status;
  return response.bytes();
}

absl::StatusOr<std::vector<std::string>> Client::ListModels(const CallOptions& call) const {
  v1::ListModelsResponse response;
  const absl::Status status = Invoke(state_->stub, &v1::EncoderService::Stub::ListModels,
                                     v1::ListModelsRequest(), call, response);
  if (!status.ok()) return status;
  return std::vector<std::string>(response.names().begin(), response.names().end());
}

absl::StatusOr<ModelInfo> Client::GetModel(const std::string& name, const CallOptions& call) const {
  v1::GetModelRequest request;
  request.set_model(name);
  v1::GetModelResponse response;
  const absl::Status status =
      Invoke(state_->stub, &v1::EncoderService::Stub::GetModel, request, call, response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<Health> Client::CheckHealth(const std::string& service,
                                           const CallOptions& call) const {
  PendingCall<HealthRequest, HealthResponse> pending;
  SetDeadline(call, pending.context);
  pending.request.set_value(service);
  absl::Status status;
  absl::Notification done;
  state_->health_stub.UnaryCall(&pending.context, kHealthCheck, {}, &pending.request,
                                &pending.response, [&](const grpc::Status& answered) {
                                  status = FromGrpc(answered);
                                  done.Notify();
                                });
  done.WaitForNotification();
  if (!status.ok()) return status;
  return static_cast<Health>(pending.response.value());
}

void Client::AttendAsync(AttendRequest request, const CallOptions& call,
                         Callback<AttendResult> done) const {
  auto pending = std::make_shared<PendingCall<v1::AttendRequest, v1::AttendResponse>>();
  SetDeadline(call, pending->context);
  pending->request = ToProto(std::move(request));
  state_->stub.async()->Attend(
      &pending->context, &pending->request, &pending->response,
      [pending, state = state_, done = std::move(done)](const grpc::Status& status) {
        if (!status.ok()) return done(FromGrpc(status));
        done(FromProto(std::move(pending->response)));
      });
}

void Client::EncodeAsync(EncodeRequest request, const CallOptions& call,
                         Callback<EncodeResult> done) const {
  auto pending = std::make_shared<PendingCall<v1::EncodeRequest, v1::EncodeResponse>>();
  SetDeadline(call, pending->context);
  pending->request = ToProto(std::move(request));
  state_->stub.async()->Encode(
      &pending->context, &pending->request, &pending->response,
      [pending, state = state_, done = std::move(done)](const grpc::Status& status) {
        if (!status.ok()) return done(FromGrpc(status));
        done(FromProto(std::move(pending->response)));
      });
}

void Client::SendAsync(const PreparedRequest& request, const CallOptions& call,
                       Callback<Execution> done) const {
  auto pending = std::make_shared<
      PendingCall<std::shared_ptr<const PreparedRequest::Wire>, grpc::ByteBuffer>>();
  SetDeadline(call, pending->context);
  pending->request = request.wire_;
  state_->generic_stub.UnaryCall(
      &pending->context, request.wire_->method, {}, &pending->request->message, &pending->response,
      [pending, state = state_, done = std::move(done)](const grpc::Status& status) {
        if (!status.ok()) return done(FromGrpc(status));
        done(ReadExecution(pending->response, pending->request->execution_field));
      });
}

std::unique_ptr<EncodeStream> Client::OpenEncodeStream(const CallOptions& call) const {
  auto context = std::make_unique<grpc::ClientContext>();
  SetDeadline(call, *context);
  return MakeEncodeStream(state_->stub, std::move(context));
}

std::unique_ptr<LoadStream> Client::OpenLoadStream(const CallOptions& call) const {
  return MakeLoadStream(std::shared_ptr<grpc::GenericStub>(state_, &state_->generic_stub), call);
}

}  // namespace attendant::client
