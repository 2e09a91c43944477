#include "server/rpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace attendant::server {
namespace {

constexpr int64_t kBesideTheTensors = 64 << 10;
constexpr int kMaxConcurrentStreams = 128;  // of one connection

std::string JoinHostPort(const std::string& host, int port) {
  const bool v6 = host.find(':') != host.npos;
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", port);
}

absl::Status CannotListen(const std::string& address, int port, const std::string& reason) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, " port ", port, " for gRPC: ", reason));
}

// 0, or the errno of what fails.
int TryListen(const addrinfo& target) {
  const int fd = socket(target.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool can = bind(fd, target.ai_addr, target.ai_addrlen) == 0 && listen(fd, 1) == 0;
  const int problem = can ? 0 : errno;
  close(fd);
  return problem;
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// A connection that is dead, idle or never says hello is closed; none may ask for too much.
void LimitConnections(grpc::ServerBuilder& builder) {
  // A gzip message of 509 KiB grew the process by 558 MiB: only identity.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1);
  // Otherwise a second server starts happily on the same port and gets half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(absl::Seconds(5)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(absl::Minutes(5)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(absl::Hours(1)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(absl::Minutes(5)));
  // Dead peers are found in 80 s, not in two hours.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(absl::Minutes(1)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(absl::Seconds(20)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(absl::Seconds(30)));
}

}  // namespace

absl::Status CheckCanListen(const std::string& address, int port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return CannotListen(address, port, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> targets(found, freeaddrinfo);
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    const int problem = TryListen(*target);
    if (problem != 0) return CannotListen(address, port, std::strerror(problem));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunningGrpcServer> StartGrpcServer(const GrpcServerOptions& options,
                                                  EncoderService& service) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  LimitConnections(builder);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_request_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_answer_bytes + kBesideTheTensors));
  grpc::ResourceQuota quota("attendant");
  quota.Resize(static_cast<size_t>(options.receive_quota_bytes));
  builder.SetResourceQuota(quota);
  RunningGrpcServer running;
  builder.AddListeningPort(JoinHostPort(options.address, options.port),
                           grpc::InsecureServerCredentials(), &running.port);
  builder.RegisterService(service.service());
  builder.RegisterCallbackGenericService(service.generic_service());
  running.server = builder.BuildAndStart();
  if (running.server == nullptr) {
    return CannotListen(options.address, options.port, "it was taken while the models loaded");
  }
  return running;
}

}  // namespace attendant::server
