// The connections of the HTTP port, the time that each has, and which of them makes room for
// another.
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

// A request, from its head until its answer has been sent.
struct HttpExchange {
  std::shared_ptr<HttpReply> reply;  // of the call
  std::shared_ptr<HttpCall> call;    // null: there is none
  HttpBodyHandler handler;           // null: there is an answer, or a call
  std::string body;                  // for the handler
  HttpAnswer answer;
  std::vector<std::pair<std::string, std::string>> headers;  // besides those of the answer
};

struct HttpLimits {
  int connections = 384;  // open at the same time
  int calls = 256;        // of them, with a call; an address may have seven of eight
  absl::Duration idle_timeout = absl::Seconds(75);  // between two requests
  // For a request that is not a call: from the first byte of its head, or from the start of the
  // connection, until its response has been sent.
  absl::Duration brief_timeout = absl::Seconds(5);
  // For the body of a call, with a second more for each `min_receive_rate` bytes received.
  absl::Duration receive_timeout = absl::Seconds(10);
  int64_t min_receive_rate = int64_t{256} << 10;
  absl::Duration send_timeout = absl::Seconds(30);  // for the response to a call
};

// Returns the limits for a process that may have this many descriptors. Calls take at most an
// eighth of them, and other connections as many, so that the HTTP port cannot use up those that
// gRPC needs.
HttpLimits HttpLimitsFor(uint64_t descriptors);
// Returns the limits for this process, from its RLIMIT_NOFILE.
HttpLimits HttpLimitsOfProcess();

// For the thread of the HTTP port.
struct HttpConnection {
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Phase {
    kBrief,  // a request that is not a call, or not known to be one yet
    kIdle,   // between two requests
    // Of a call: its body is received; its response is computed, while the library does not look at
    // the connection; the response is sent.
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
  std::string address = {};  // the network of the caller
  std::string peer = {};     // HttpRequest::peer
  Phase phase = Phase::kBrief;
  TimePoint since = {};  // the start of the phase
  int64_t received = 0;  // bytes of the body
  bool gone = false;     // the client has hung up while it waited for the response
  bool closing = false;  // the library closes it in its next run
  MHD_Connection* library = nullptr;
  std::optional<HttpExchange> exchange = {};                // the request that is under way
  std::shared_ptr<const HttpCredentials> credentials = {};  // of the handshake; null: no TLS
};

// When all places are taken, a connection without a call makes room for a new one: of the address
// that has the most of them, the one that has been idle longest; if none is idle, the one whose
// request began first. Refusing the new one instead would let clients that send nothing lock out
// all others until they time out, whereas a request that is sent at once is answered long before it
// is the oldest. A connection with a call keeps its place, but calls leave some to others.
//
// Not thread-safe. Only Add and InTheWayOf allocate, and refusals.
class HttpConnections {
 public:
  using TimePoint = HttpConnection::TimePoint;

  explicit HttpConnections(const HttpLimits& limits);

  // Returns the connection that has to be closed before one from `address` is added; null if there
  // is room.
  HttpConnection* InTheWayOf(const std::string& address) const;
  // Returns RESOURCE_EXHAUSTED with the reason (server/metrics/refusal.h) if there is no place for
  // another call, or for one from this address.
  absl::Status CheckRoomForCall(const std::string& address) const;
  HttpConnection& Add(HttpConnection connection);
  HttpConnection* Find(int descriptor) const;  // null: it is not there
  void Remove(int descriptor);                 // does nothing if it is not there
  void RemoveUnserved();                       // those that the library does not have

  // Returns the end of the first phase that ends; none if no time runs.
  std::optional<TimePoint> next_end() const;
  // Returns a connection whose time is over; null if there is none. It has to be closed.
  HttpConnection* Ended(TimePoint now) const;
  const std::vector<std::unique_ptr<HttpConnection>>& all() const { return all_; }

 private:
  std::optional<TimePoint> EndOf(const HttpConnection& connection) const;

  const HttpLimits limits_;
  std::vector<std::unique_ptr<HttpConnection>> all_;
};

}  // namespace attendant::server
