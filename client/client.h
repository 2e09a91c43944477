// The client of attendant.v1.EncoderService. Its calls take and return the structs of messages.h.
//
//   Client client = Client::Connect("localhost:8001");
//   AttendRequest request;
//   request.hidden_states = FloatTensor({1, 3, 4}, values);
//   absl::StatusOr<AttendResult> result = client.Attend(std::move(request));
//
// Errors are the server's status with its message. UNAVAILABLE also means that the server cannot be
// reached, and INTERNAL that its answer is not valid.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/call.h"
#include "client/encode_stream.h"
#include "client/load_stream.h"
#include "client/messages.h"
#include "client/prepared_request.h"

namespace attendant::client {

class Channel;

// PEM texts for a connection over TLS.
struct TlsOptions {
  std::string ca;           // certificates that may have signed the server's; empty: the system's
  std::string certificate;  // of the client, for a server that asks for one; empty: none
  std::string key;          // of the certificate
};

// Options of a connection.
struct ClientOptions {
  // The largest message, in bytes, that is sent or received. gRPC's own default of 4 MiB is less
  // than [2, 512, 1024] in float32 needs.
  int max_message_bytes = std::numeric_limits<int>::max();
  // Opens a TCP connection of its own; otherwise, the clients of one process share one for each
  // address.
  bool own_connection = false;
  // Tries calls of Attend, Encode, Tokenize, ListModels, GetModel and GetTokenizer again, up to
  // four times in about two seconds, while servers refuse them with UNAVAILABLE or cannot be
  // reached.
  bool retry = true;
  // Without them, the connection is not encrypted.
  std::optional<TlsOptions> tls = {};
  // Sent with every call, for a server that asks for a bearer token; empty: none. Without TLS the
  // network can see it.
  std::string token = {};
  // Connects through the HTTP proxy that the environment names (grpc_proxy, https_proxy or
  // http_proxy, but for the hosts in no_grpc_proxy or no_proxy).
  bool proxy = false;
};

// A handle on a gRPC channel. Thread-safe; any number of calls may run at
// the same time. Copies share the channel, and a call keeps alive what it needs, so that a Client
// may be destroyed before its callbacks have run.
class Client {
 public:
  template <typename T>
  using Callback = client::Callback<T>;

  // Returns a client of the server at `address`, which is "host:port", a URL of these
  // ("http://host:port", or with https for TLS) or any other name that gRPC resolves ("unix:/path",
  // "ipv4:10.0.0.1:8001,10.0.0.2:8001"). If these are several servers, calls go to them in turn.
  // Does not wait: the first call connects. If the address cannot be one, all calls fail with
  // INVALID_ARGUMENT.
  static Client Connect(const std::string& address, const ClientOptions& options = {});

  // These block until the answer has arrived. Tensors are moved into the call and out of the
  // answer, not copied.
  absl::StatusOr<AttendResult> Attend(AttendRequest request, const CallOptions& call = {}) const;
  absl::StatusOr<EncodeResult> Encode(EncodeRequest request, const CallOptions& call = {}) const;
  absl::StatusOr<TokenizeResult> Tokenize(TokenizeRequest request,
                                          const CallOptions& call = {}) const;
  absl::StatusOr<RegisteredMemory> PutMemory(PutMemoryRequest request,
                                             const CallOptions& call = {}) const;
  // Returns the number of bytes that the server has freed. NOT_FOUND: there is no such memory.
  absl::StatusOr<int64_t> DropMemory(const std::string& handle, const CallOptions& call = {}) const;
  // Returns the names of all models, in ascending order.
  absl::StatusOr<std::vector<std::string>> ListModels(const CallOptions& call = {}) const;
  // Returns the description of a model. An empty name stands for the server's only model.
  absl::StatusOr<ModelInfo> GetModel(const std::string& name, const CallOptions& call = {}) const;
  // Returns what text is turned into token ids with for a model. NOT_FOUND: its folder has no
  // tokenizer.json.
  absl::StatusOr<TokenizerInfo> GetTokenizer(const std::string& name,
                                             const CallOptions& call = {}) const;
  // Returns the health of the whole server, for an empty name, or of one service or model.
  // NOT_FOUND: the server knows no such name.
  absl::StatusOr<Health> CheckHealth(const std::string& service,
                                     const CallOptions& call = {}) const;

  // These return at once. `done` runs exactly once, on a thread of gRPC, and must not block.
  void AttendAsync(AttendRequest request, const CallOptions& call,
                   Callback<AttendResult> done) const;
  void EncodeAsync(EncodeRequest request, const CallOptions& call,
                   Callback<EncodeResult> done) const;
  // Returns only how the request was computed and drops the tensors of the answer unparsed, which
  // keeps a load generator cheap.
  void SendAsync(const PreparedRequest& request, const CallOptions& call,
                 Callback<Execution> done) const;

  // Returns the answer with its tensors, but serialised, for comparing answers bit by bit.
  void FetchAsync(const PreparedRequest& request, const CallOptions& call,
                  Callback<RawAnswer> done) const;

  // Opens a stream of Encode calls, which may outlive the Client. The timeout of `call` bounds the
  // whole stream.
  std::unique_ptr<EncodeStream> OpenEncodeStream(const CallOptions& call = {}) const;
  // Opens a stream for load generators, which may outlive the Client. The timeout of `call` bounds
  // each request, not the stream.
  std::unique_ptr<LoadStream> OpenLoadStream(const CallOptions& call = {}) const;

 private:
  explicit Client(std::shared_ptr<const Channel> channel);

  std::shared_ptr<const Channel> channel_;
};

}  // namespace attendant::client
