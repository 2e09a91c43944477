// The connections of the HTTP port, their time limits, and their eviction.
#pragma once

#include <microhttpd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/http/http_call.h"

namespace attendant::server {

class HttpCredentials;

// A request, from its head until its response has been sent.
struct HttpExchange {
  std::shared_ptr<HttpReply> reply;  // of the call
  std::shared_ptr<HttpCall> call;    // null if there is none
  HttpBodyHandler handler;           // null if there is a response or a call
  std::string body;                  // for the handler
  HttpAnswer answer;
  std::vector<std::pair<std::string, std::string>> headers;  // in addition to those of the answer
};

struct HttpLimits {
  int connections = 384;  // open at the same time
  int calls = 256;        // of them, with a call; one address may use seven eighths
  absl::Duration idle_timeout = absl::Seconds(75);  // between requests
  // For a request that is not a call: from the first byte of its head, or from the start of the
  // connection, until its response is sent.
  absl::Duration brief_timeout = absl::Seconds(5);
  // For the body of a call, plus one second for each `min_receive_rate` bytes received.
  absl::Duration receive_timeout = absl::Seconds(10);
  int64_t min_receive_rate = int64_t{256} << 10;
  absl::Duration send_timeout = absl::Seconds(30);  // for the response to a call
};

// Returns the limits for a process that may open this many descriptors. Calls take at most an
// eighth of them, and other connections as many, so that the HTTP port leaves enough for gRPC.
HttpLimits HttpLimitsFor(uint64_t descriptors);
// Returns the limits for this process, from its RLIMIT_NOFILE.
HttpLimits HttpLimitsOfProcess();

// Used by the HTTP port's thread.
struct HttpConnection {
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Phase {
    kBrief,  // a request that is not a call, or not yet known to be one
    kIdle,   // between requests
    // Phases of a call: receiving the body; computing the response, while the library ignores the
    // connection; sending the response.
    kReceiving,
    kWaiting,
    kSending
  };

  bool has_call() const { return phase >= Phase::kReceiving; }
  void Enter(Phase next, TimePoint now = std::chrono::steady_clock::now()) {
    phase = next;
    since = now;
  }

  int descriptor = -1;
  std::string address = {};  // the client's network
  IpAddress peer = {};       // the client
  Phase phase = Phase::kBrief;
  TimePoint since = {};    // the start of the phase
  int64_t received = 0;    // bytes of the body
  bool cancelled = false;  // the client disconnected while waiting for the response
  bool closing = false;    // the library closes it in its next run
  MHD_Connection* library = nullptr;
  std::optional<HttpExchange> exchange = {};                // in progress
  std::shared_ptr<const HttpCredentials> credentials = {};  // of the handshake; null without TLS
};

// When all places are taken, a new connection evicts one without a call: of the address with the
// most such connections, the longest idle one; if none is idle, the one with the oldest request.
// Refusing the new one would let clients that send nothing lock out all others until they time out,
// while a request sent at once is answered long before it is the oldest. A connection with a call
// keeps its place, but calls leave some places to others.
//
// Not thread-safe. Only Add, InTheWayOf and refusals allocate.
class HttpConnections {
 public:
  using TimePoint = HttpConnection::TimePoint;

  explicit HttpConnections(const HttpLimits& limits);

  // Returns the connection to close before adding one from `address`; null if there is room.
  HttpConnection* InTheWayOf(const std::string& address) const;
  // Returns RESOURCE_EXHAUSTED with a reason (server/metrics/refusal.h) if there is no place for
  // another call, or for another call of this address.
  absl::Status CheckRoomForCall(const std::string& address) const;
  HttpConnection& Add(HttpConnection connection);
  HttpConnection* Find(int descriptor) const;  // null if unknown
  void Remove(int descriptor);                 // ignores unknown descriptors
  void RemoveUnserved();                       // those that the library does not have

  // Returns the earliest end of a phase; nullopt if no limit applies.
  std::optional<TimePoint> next_end() const;
  // Returns a connection past its time limit, to be closed; null if there is none.
  HttpConnection* Ended(TimePoint now) const;
  const std::vector<std::unique_ptr<HttpConnection>>& all() const { return all_; }

 private:
  std::optional<TimePoint> EndOf(const HttpConnection& connection) const;

  const HttpLimits limits_;
  std::vector<std::unique_ptr<HttpConnection>> all_;
};

}  // namespace attendant::server
