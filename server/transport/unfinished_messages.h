// UnfinishedMessages, which counts the bytes of a connection's incomplete messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant::server {

// gRPC keeps a message until all of it has arrived, and does not report it before. Bytes after a
// complete message that the server does not read are bounded by the window of their stream.
//
// Not thread-safe.
class UnfinishedMessages {
 public:
  // Bytes that a client may send on a stream before the server reads: HTTP/2's initial window. When
  // the server reads a message, the window grows to its announced length.
  static constexpr int64_t kFirstWindow = int64_t{64} << 10;
  static constexpr int64_t kBody = int64_t{1} << 10;

  // For at most this many open streams. Does not allocate afterwards, because reading must not
  // fail.
  explicit UnfinishedMessages(size_t most_streams) { streams_.reserve(most_streams); }

  // The client begins or continues a stream. Returns false if it has too many.
  bool Begin(uint32_t stream);
  // The client has sent more of the stream's messages, each with its five-byte prefix.
  void Receive(uint32_t stream, absl::string_view data);
  // The client half-closes or resets the stream.
  void EndByClient(uint32_t stream);
  // The server has ended the stream, so that gRPC drops its received bytes.
  void EndByServer(uint32_t stream);
  // The server has reset the stream, for which a client then sends nothing more, not even a reset.
  // The stream is closed once kBody bytes have arrived for it: calls with a body may be refused any
  // number of times, but calls that cost the client nothing may not be left open so often.
  void ResetByServer(uint32_t stream);

  // Returns the bytes received of unfinished messages, excluding each stream's first window.
  int64_t beyond_first_windows() const { return beyond_first_windows_; }
  // Returns the bytes received of the largest unfinished message.
  int64_t largest() const;
  // Returns how many of the newest streams together account for `bytes`.
  int64_t NewestHolding(int64_t bytes) const;

 private:
  struct Stream {
    uint32_t id = 0;
    bool ended_by_server = false;
    bool reset_by_server = false;
    int64_t body = 0;      // bytes received of all messages
    int prefix_bytes = 0;  // received of the message
    uint32_t length = 0;   // of the message, once its prefix is complete
    int64_t received = 0;  // of the message
  };

  std::vector<Stream>::iterator LowerBound(uint32_t id);
  Stream* Find(uint32_t id);  // null if not open
  void SetReceived(Stream& stream, int64_t bytes);

  std::vector<Stream> streams_;  // begun and neither ended by the client nor closed, by id
  int64_t beyond_first_windows_ = 0;
};

}  // namespace attendant::server
