#include "server/rpc/grpc_server.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/resource_quota.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/base/clock.h"
#include "server/base/fault.h"
#include "server/security/server_secrets.h"

namespace attendant::server {
namespace {

constexpr int64_t kBesideTheTensors = 64 << 10;
constexpr int kMaxConcurrentStreams = 128;  // of one connection

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// How long calls are refused before their connections are closed, and how long closing may take.
constexpr absl::Duration kLinger = absl::Milliseconds(300);

// A connection that is dead, idle or never says hello is closed; none may ask for too much.
void LimitConnections(const ServiceLimits& limits, grpc::ServerBuilder& builder) {
  // A gzip message of 509 KiB grew the process by 558 MiB: only identity.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  // Without probing, an unread body is received only up to the fixed initial window. Probing grows
  // the window to megabytes for every stream; a body that is read gets its window in any case.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(absl::Seconds(5)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(absl::Minutes(5)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                             Milliseconds(limits.max_connection_age));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(absl::Minutes(5)));
  // Dead peers are found in 80 s, not in two hours.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(absl::Minutes(1)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(absl::Seconds(20)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(absl::Seconds(30)));
}

void LimitMemory(const ServiceLimits& limits, int64_t receive_quota_bytes,
                 grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.max_request_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(limits.max_answer_bytes + kBesideTheTensors));
  grpc::ResourceQuota quota("attendant");
  quota.Resize(static_cast<size_t>(receive_quota_bytes));
  builder.SetResourceQuota(quota);
}

// The C++ interface of this version of gRPC reloads certificates only from files, without checks;
// the C interface asks for them at each handshake. Each handshake uses the newest certificates.
// With a client CA, clients may present a certificate; the handshake fails if the CA has not signed
// it or it has expired. CallDispatcher decides whether a client may call without one.
class Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(const ServerSecrets& secrets)
      : certificates_(*secrets.certificates), credentials_(MakeTls(secrets.NeedCertificates())) {}
  ~Credentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* MakeTls(bool needs_certificate) {
    // The handshake fails if a client presents an invalid certificate. Calls that require a
    // certificate are refused later, because health checks do not.
    const auto request_type = needs_certificate ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request_type, Fetch, this));
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<Credentials*>(self)->FetchNew(*config);
  }

  grpc_ssl_certificate_config_reload_status FetchNew(grpc_ssl_server_certificate_config*& config) {
    const std::shared_ptr<const Certificates> current = certificates_.current();
    absl::MutexLock lock(&mutex_);
    if (current == in_use_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    in_use_ = current;
    const grpc_ssl_pem_key_cert_pair pair = {current->key.c_str(), current->chain.c_str()};
    // gRPC requires certificates of client CAs even if it does not request client certificates.
    const std::string& roots = current->client_ca.empty() ? current->chain : current->client_ca;
    config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const Reloaded<Certificates>& certificates_;
  absl::Mutex mutex_;
  std::shared_ptr<const Certificates> in_use_ ABSL_GUARDED_BY(mutex_);
  grpc_server_credentials* const credentials_;
};

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerSecrets& secrets) {
  if (secrets.certificates == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<Credentials>(secrets);
}

}  // namespace

absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(CallDispatcher& dispatcher,
                                                              ConnectionListener& listener,
                                                              int64_t receive_quota_bytes) {
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  const ServiceContext& context = dispatcher.context();
  grpc::EnableDefaultHealthCheckService(false);  // the service has its own
  grpc::ServerBuilder builder;
  LimitConnections(context.limits, builder);
  LimitMemory(context.limits, receive_quota_bytes, builder);
  builder.RegisterCallbackGenericService(&dispatcher);
  const std::shared_ptr<grpc::ServerCredentials> credentials =
      MakeServerCredentials(context.secrets);
  const std::shared_ptr<Acceptor> acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("gRPC failed to start a server");
  // It also keeps the credentials, which must outlive the server.
  const auto take = [acceptor, credentials](int socket, int connection) {
    Acceptor::NewConnectionParameters parameters;
    parameters.listener_fd = socket;
    parameters.fd = connection;
    acceptor->HandleNewConnection(&parameters);
  };
  const auto on_refused = [&metrics = context.metrics](ConnectionRefusal refusal) {
    // One that cannot be counted is refused nevertheless.
    Guarded([&] { metrics.RecordRefusedConnection(ConnectionRefusalName(refusal)); }).IgnoreError();
  };
  if (absl::Status status = listener.Start(take, on_refused); !status.ok()) return status;
  return server;
}

void EndGrpcServer(grpc::Server& server, ConnectionListener& listener, absl::Time deadline) {
  // Callers are told to go elsewhere by refusals, for as long as most of them take to call again.
  absl::SleepFor(std::min(kLinger, deadline - RealClock().Now()));
  // Closing a connection drops what of its answers is still in the kernel if the other end sends
  // anything meanwhile, such as the window updates of a reader.
  if (const int64_t unsent = listener.connections().AwaitSent(absl::InfinitePast()); unsent > 0) {
    spdlog::info("draining: {} connections with unreceived responses", unsent);
    const int64_t cut = listener.connections().AwaitSent(deadline);
    if (cut > 0)
      spdlog::warn("drain timeout: closing {} connections before their responses are received",
                   cut);
  }
  // A call that arrives after Shutdown ends with CANCELLED, which clients do not retry. One that
  // arrives as its connection closes is UNAVAILABLE.
  listener.connections().EndReading(RealClock().Now() + kLinger);
  server.Shutdown(std::chrono::system_clock::now());
}

}  // namespace attendant::server
