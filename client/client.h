// A client of attendant.v1.EncoderService. Calls take and return the structs of messages.h.
//
//   Client client = Client::Connect("localhost:8001");
//   AttendRequest request;
//   request.hidden_states = FloatTensor({1, 3, 4}, values);
//   absl::StatusOr<AttendResult> result = client.Attend(std::move(request));
//
// Errors are the server's status and message. In addition, UNAVAILABLE means that the server cannot
// be reached, and INTERNAL that its response is invalid.
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

// PEM strings for a TLS connection.
struct TlsOptions {
  std::string ca;           // trusted authorities; empty: the system's
  std::string certificate;  // client certificate, if the server requires one
  std::string key;          // its private key
};

// Connection options.
struct ClientOptions {
  // Maximum size of a message in bytes, in both directions. gRPC's default of 4 MiB is too small
  // for [2, 512, 1024] in float32.
  int max_message_bytes = std::numeric_limits<int>::max();
  // Opens a separate TCP connection; by default, the clients of one process share one per address.
  bool own_connection = false;
  // Retries calls of Attend, Encode, Tokenize, ListModels, GetModel and GetTokenizer, up to four
  // times in about two seconds, while servers refuse them with UNAVAILABLE or cannot be reached.
  bool retry = true;
  // If absent, the connection is not encrypted.
  std::optional<TlsOptions> tls = {};
  // Bearer token to send with every call; empty: none. Without TLS, it is visible on the network.
  std::string token = {};
  // Uses the HTTP proxy from the environment (grpc_proxy, https_proxy or http_proxy, except for
  // hosts in no_grpc_proxy or no_proxy).
  bool proxy = false;
};

// A handle on a gRPC channel. Thread-safe; any number of calls may run at the same time. Copies
// share the channel. A Client may be destroyed before its callbacks have run, because each call
// keeps the channel alive.
class Client {
 public:
  template <typename T>
  using Callback = client::Callback<T>;

  // Returns a client of the server at `address`: "host:port", a URL ("http://host:port", or https
  // for TLS) or any other name that gRPC resolves ("unix:/path",
  // "ipv4:10.0.0.1:8001,10.0.0.2:8001"). With several servers, calls go to them in turn. Does not
  // block: the first call connects. If the address is invalid, all calls fail with
  // INVALID_ARGUMENT.
  static Client Connect(const std::string& address, const ClientOptions& options = {});

  // These block until the response has arrived. Tensors are moved, not copied.
  absl::StatusOr<AttendResult> Attend(AttendRequest request, const CallOptions& call = {}) const;
  absl::StatusOr<EncodeResult> Encode(EncodeRequest request, const CallOptions& call = {}) const;
  absl::StatusOr<TokenizeResult> Tokenize(TokenizeRequest request,
                                          const CallOptions& call = {}) const;
  absl::StatusOr<RegisteredMemory> PutMemory(PutMemoryRequest request,
                                             const CallOptions& call = {}) const;
  // Returns the number of bytes freed. NOT_FOUND if there is no such memory.
  absl::StatusOr<int64_t> DropMemory(const std::string& handle, const CallOptions& call = {}) const;
  // Returns the names of all models, in ascending order.
  absl::StatusOr<std::vector<std::string>> ListModels(const CallOptions& call = {}) const;
  // Returns the description of a model. An empty name means the server's only model.
  absl::StatusOr<ModelInfo> GetModel(const std::string& name, const CallOptions& call = {}) const;
  // Returns the tokenizer of a model. NOT_FOUND if its directory has no tokenizer.json.
  absl::StatusOr<TokenizerInfo> GetTokenizer(const std::string& name,
                                             const CallOptions& call = {}) const;
  // Returns the health of a service or model, or of the whole server if the name is empty.
  // NOT_FOUND if the name is unknown.
  absl::StatusOr<Health> CheckHealth(const std::string& service,
                                     const CallOptions& call = {}) const;

  // These return at once. `done` runs exactly once, on a gRPC thread, and must not block.
  void AttendAsync(AttendRequest request, const CallOptions& call,
                   Callback<AttendResult> done) const;
  void EncodeAsync(EncodeRequest request, const CallOptions& call,
                   Callback<EncodeResult> done) const;
  // Returns only the execution and discards the response's tensors unparsed, for efficient load
  // generators.
  void SendAsync(const PreparedRequest& request, const CallOptions& call,
                 Callback<Execution> done) const;

  // Returns the response with its tensors in serialized form, to compare responses bit by bit.
  void FetchAsync(const PreparedRequest& request, const CallOptions& call,
                  Callback<RawAnswer> done) const;

  // Opens a stream of Encode calls, which may outlive the Client. The timeout of `call` applies to
  // the whole stream.
  std::unique_ptr<EncodeStream> OpenEncodeStream(const CallOptions& call = {}) const;
  // Opens a stream for load generators, which may outlive the Client. The timeout of `call` applies
  // to each request, not to the stream.
  std::unique_ptr<LoadStream> OpenLoadStream(const CallOptions& call = {}) const;

 private:
  explicit Client(std::shared_ptr<const Channel> channel);

  std::shared_ptr<const Channel> channel_;
};

}  // namespace attendant::client
