// A client of attendant.v1.EncoderService.
//
//   Client client = Client::Connect("localhost:8001");
//   AttendRequest request;
//   request.hidden_states = FloatTensor({1, 3, 4}, values);
//   absl::StatusOr<AttendResult> result = client.Attend(std::move(request));
//
// Errors are the status that the server answered, with its message. UNAVAILABLE also stands for a
// server that cannot be reached, and INTERNAL for an answer that is not sound.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
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

struct ClientOptions {
  // Bytes of one message, either way. gRPC's own default of 4 MiB is less than [2, 512, 1024] in
  // float32.
  int max_message_bytes = std::numeric_limits<int>::max();
  // A connection of its own; else clients of one process share theirs to the same address.
  bool own_connection = false;
};

// A handle on a channel. Thread-safe; calls may run at the same time. Copies share the channel, and
// a call in flight keeps what it needs alive, so that a Client may go away before its callbacks
// have run.
class Client {
 public:
  template <typename T>
  using Callback = client::Callback<T>;

  // `address` is "host:port", or any other name that gRPC resolves ("unix:/path"). Does not wait:
  // the first call connects.
  static Client Connect(const std::string& address, const ClientOptions& options = {});

  // These block until the answer is there. Tensors are moved into the call; none is copied.
  absl::StatusOr<AttendResult> Attend(AttendRequest request, const CallOptions& call = {}) const;
  absl::StatusOr<EncodeResult> Encode(EncodeRequest request, const CallOptions& call = {}) const;
  absl::StatusOr<RegisteredMemory> PutMemory(PutMemoryRequest request,
                                             const CallOptions& call = {}) const;
  // The bytes that are free again.
  absl::StatusOr<int64_t> DropMemory(const std::string& handle, const CallOptions& call = {}) const;
  // Sorted by name.
  absl::StatusOr<std::vector<std::string>> ListModels(const CallOptions& call = {}) const;
  // An empty name is the server's only model.
  absl::StatusOr<ModelInfo> GetModel(const std::string& name, const CallOptions& call = {}) const;
  // Health of the whole server (empty), or of one service or model. NOT_FOUND if the server knows
  // no such name.
  absl::StatusOr<Health> CheckHealth(const std::string& service,
                                     const CallOptions& call = {}) const;

  // These return at once; `done` runs once, on a thread of gRPC's, and must not block.
  void AttendAsync(AttendRequest request, const CallOptions& call,
                   Callback<AttendResult> done) const;
  void EncodeAsync(EncodeRequest request, const CallOptions& call,
                   Callback<EncodeResult> done) const;
  // Answers only how the request was computed: the tensors of the answer are received and dropped,
  // for load generators.
  void SendAsync(const PreparedRequest& request, const CallOptions& call,
                 Callback<Execution> done) const;

  // Opens a stream of Encode calls. `call` bounds the whole stream.
  std::unique_ptr<EncodeStream> OpenEncodeStream(const CallOptions& call = {}) const;
  // Opens a stream for load generators; `call` bounds each request, not the stream.
  std::unique_ptr<LoadStream> OpenLoadStream(const CallOptions& call = {}) const;

 private:
  explicit Client(std::shared_ptr<const Channel> channel);

  std::shared_ptr<const Channel> channel_;
};

}  // namespace attendant::client
