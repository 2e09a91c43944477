#include "client/client.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/address.h"
#include "client/bearer_token.h"
#include "client/channel.h"
#include "client/execution_reader.h"
#include "client/grpc_encode_stream.h"
#include "client/grpc_load_stream.h"
#include "client/prepared_request_wire.h"
#include "client/proto_conversion.h"
#include "client/service_config.h"

namespace attendant::client {
namespace {

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kAttend[] = "/attendant.v1.EncoderService/Attend";
constexpr char kEncode[] = "/attendant.v1.EncoderService/Encode";

void SetDeadline(const CallOptions& call, grpc::ClientContext& context) {
  if (call.timeout == absl::InfiniteDuration()) return;
  context.set_deadline(absl::ToChronoTime(absl::Now() + call.timeout));
}

// The objects that an asynchronous call uses until it has ended.
template <typename Request, typename Response, typename Result>
struct PendingCall {
  PendingCall(const Channel& channel, const CallOptions& call, Request message,
              Callback<Result> callback)
      : hold(channel), request(std::move(message)), done(std::move(callback)) {
    SetDeadline(call, context);
  }

  const Channel::Hold hold;
  grpc::ClientContext context;
  const Request request;
  Response response;
  const Callback<Result> done;
};

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

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ClientOptions& options, bool tls) {
  if (!options.tls && !tls) return grpc::InsecureChannelCredentials();
  const TlsOptions given = options.tls.value_or(TlsOptions());
  grpc::SslCredentialsOptions texts;
  texts.pem_root_certs = given.ca;
  texts.pem_cert_chain = given.certificate;
  texts.pem_private_key = given.key;
  return grpc::SslCredentials(texts);
}

grpc::ChannelArguments ArgumentsOf(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_message_bytes);
  if (options.own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetServiceConfigJSON(ServiceConfig());
  // CheckHealth has to reach servers that do not serve, too.
  arguments.SetInt(GRPC_ARG_INHIBIT_HEALTH_CHECKING, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, options.retry ? 1 : 0);
  // By default gRPC would send even calls to localhost to the environment's proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, options.proxy ? 1 : 0);
  // The request stays where it is; this much of it may be sent again.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, options.max_message_bytes);
  return arguments;
}

// Returns a channel on which every call fails with `status`.
std::shared_ptr<grpc::Channel> FailingChannel(const absl::Status& status) {
  grpc_init();
  const std::string message(status.message());
  grpc_channel* const lame = grpc_lame_client_channel_create(
      nullptr, static_cast<grpc_status_code>(status.code()), message.c_str());
  std::shared_ptr<grpc::Channel> channel = grpc::CreateChannelInternal("", lame, {});
  grpc_shutdown();
  return channel;
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

PreparedRequest PreparedRequest::Raw(std::string method, const std::string& message) {
  PreparedRequest prepared;
  const grpc::Slice slice(message);
  prepared.wire_ =
      std::make_shared<const Wire>(Wire{std::move(method), 0, grpc::ByteBuffer(&slice, 1)});
  return prepared;
}

int64_t PreparedRequest::bytes() const { return static_cast<int64_t>(wire_->message.Length()); }
const PreparedRequest::Wire& PreparedRequest::wire() const { return *wire_; }

Client::Client(std::shared_ptr<const Channel> channel) : channel_(std::move(channel)) {}

Client Client::Connect(const std::string& address, const ClientOptions& options) {
  const absl::StatusOr<Address> read = ReadAddress(address);
  if (!read.ok()) return Client(Channel::Make(FailingChannel(read.status())));
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (!options.token.empty()) interceptors.push_back(SendToken(options.token));
  return Client(Channel::Make(grpc::experimental::CreateCustomChannelWithInterceptors(
      read->target, CredentialsOf(options, read->tls), ArgumentsOf(options),
      std::move(interceptors))));
}

absl::StatusOr<AttendResult> Client::Attend(AttendRequest request, const CallOptions& call) const {
  v1::AttendResponse response;
  const absl::Status status = Invoke(channel_->stub, &v1::EncoderService::Stub::Attend,
                                     ToProto(std::move(request)), call, response);
  if (!status.ok()) return status;
  return FromProto(std::move(response));
}

absl::StatusOr<EncodeResult> Client::Encode(EncodeRequest request, const CallOptions& call) const {
  v1::EncodeResponse response;
  const absl::Status status = Invoke(channel_->stub, &v1::EncoderService::Stub::Encode,
                                     ToProto(std::move(request)), call, response);
  if (!status.ok()) return status;
  return FromProto(std::move(response));
}

absl::StatusOr<TokenizeResult> Client::Tokenize(TokenizeRequest request,
                                                const CallOptions& call) const {
  v1::TokenizeResponse response;
  const absl::Status status = Invoke(channel_->stub, &v1::EncoderService::Stub::Tokenize,
                                     ToProto(std::move(request)), call, response);
  if (!status.ok()) return status;
  return FromProto(std::move(response));
}

absl::StatusOr<RegisteredMemory> Client::PutMemory(PutMemoryRequest request,
                                                   const CallOptions& call) const {
  v1::PutMemoryResponse response;
  const absl::Status status = Invoke(channel_->stub, &v1::EncoderService::Stub::PutMemory,
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
      Invoke(channel_->stub, &v1::EncoderService::Stub::DropMemory, request, call, response);
  if (!status.ok()) return status;
  return response.bytes();
}

absl::StatusOr<std::vector<std::string>> Client::ListModels(const CallOptions& call) const {
  v1::ListModelsResponse response;
  const absl::Status status = Invoke(channel_->stub, &v1::EncoderService::Stub::ListModels,
                                     v1::ListModelsRequest(), call, response);
  if (!status.ok()) return status;
  return std::vector<std::string>(response.names().begin(), response.names().end());
}

absl::StatusOr<ModelInfo> Client::GetModel(const std::string& name, const CallOptions& call) const {
  v1::GetModelRequest request;
  request.set_model(name);
  v1::GetModelResponse response;
  const absl::Status status =
      Invoke(channel_->stub, &v1::EncoderService::Stub::GetModel, request, call, response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<TokenizerInfo> Client::GetTokenizer(const std::string& name,
                                                   const CallOptions& call) const {
  v1::GetTokenizerRequest request;
  request.set_model(name);
  v1::GetTokenizerResponse response;
  const absl::Status status =
      Invoke(channel_->stub, &v1::EncoderService::Stub::GetTokenizer, request, call, response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<Health> Client::CheckHealth(const std::string& service,
                                           const CallOptions& call) const {
  grpc::ClientContext context;
  SetDeadline(call, context);
  HealthRequest request;
  request.set_value(service);
  HealthResponse response;
  absl::Status status;
  absl::Notification done;
  channel_->health_stub.UnaryCall(&context, kHealthCheck, {}, &request, &response,
                                  [&](const grpc::Status& answered) {
                                    status = FromGrpc(answered);
                                    done.Notify();
                                  });
  done.WaitForNotification();
  if (!status.ok()) return status;
  return static_cast<Health>(response.value());
}

void Client::AttendAsync(AttendRequest request, const CallOptions& call,
                         Callback<AttendResult> done) const {
  auto pending = std::make_shared<PendingCall<v1::AttendRequest, v1::AttendResponse, AttendResult>>(
      *channel_, call, ToProto(std::move(request)), std::move(done));
  channel_->stub.async()->Attend(&pending->context, &pending->request, &pending->response,
                                 [pending](const grpc::Status& status) {
                                   if (!status.ok()) return pending->done(FromGrpc(status));
                                   pending->done(FromProto(std::move(pending->response)));
                                 });
}

void Client::EncodeAsync(EncodeRequest request, const CallOptions& call,
                         Callback<EncodeResult> done) const {
  auto pending = std::make_shared<PendingCall<v1::EncodeRequest, v1::EncodeResponse, EncodeResult>>(
      *channel_, call, ToProto(std::move(request)), std::move(done));
  channel_->stub.async()->Encode(&pending->context, &pending->request, &pending->response,
                                 [pending](const grpc::Status& status) {
                                   if (!status.ok()) return pending->done(FromGrpc(status));
                                   pending->done(FromProto(std::move(pending->response)));
                                 });
}

void Client::SendAsync(const PreparedRequest& request, const CallOptions& call,
                       Callback<Execution> done) const {
  using Wire = std::shared_ptr<const PreparedRequest::Wire>;
  auto pending = std::make_shared<PendingCall<Wire, grpc::ByteBuffer, Execution>>(
      *channel_, call, request.wire_, std::move(done));
  channel_->generic_stub.UnaryCall(
      &pending->context, request.wire_->method, {}, &pending->request->message, &pending->response,
      [pending](const grpc::Status& status) {
        if (!status.ok()) return pending->done(FromGrpc(status));
        pending->done(ReadExecution(pending->response, pending->request->execution_field));
      });
}

void Client::FetchAsync(const PreparedRequest& request, const CallOptions& call,
                        Callback<RawAnswer> done) const {
  using Wire = std::shared_ptr<const PreparedRequest::Wire>;
  auto pending = std::make_shared<PendingCall<Wire, grpc::ByteBuffer, RawAnswer>>(
      *channel_, call, request.wire_, std::move(done));
  channel_->generic_stub.UnaryCall(
      &pending->context, request.wire_->method, {}, &pending->request->message, &pending->response,
      [pending](const grpc::Status& status) {
        if (!status.ok()) return pending->done(FromGrpc(status));
        pending->done(ReadRawAnswer(pending->response, pending->request->execution_field));
      });
}

std::unique_ptr<EncodeStream> Client::OpenEncodeStream(const CallOptions& call) const {
  auto context = std::make_unique<grpc::ClientContext>();
  SetDeadline(call, *context);
  return MakeEncodeStream(channel_->stub, std::move(context));
}

std::unique_ptr<LoadStream> Client::OpenLoadStream(const CallOptions& call) const {
  return MakeLoadStream(channel_, call);
}

}  // namespace attendant::client
