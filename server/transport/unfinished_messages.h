// UnfinishedMessages, which counts the bytes of a connection's messages that have not arrived
// whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant::server {

// gRPC keeps a message until all of it has arrived, and reports nothing before. The bytes after a
// whole message that the server does not read are bounded by the window of their stream.
//
// Not thread-safe.
class UnfinishedMessages {
 public:
  // Bytes that a client may send on a stream before the server reads: HTTP/2's first window. The
  // window grows to the length that a message announces once the server reads the message.
  static constexpr int64_t kFirstWindow = int64_t{64} << 10;

  // For at most so many open streams. Nothing else is allocated, because reading must not fail.
  explicit UnfinishedMessages(size_t most_streams) { streams_.reserve(most_streams); }

  // The client begins a stream, or continues one that it has begun. Returns false if it has too
  // many.
  bool Begin(uint32_t stream);
  // The client has sent more of the stream's messages, each with its prefix of five bytes.
  void Receive(uint32_t stream, absl::string_view data);
  // The client sends nothing more on the stream.
  void EndByClient(uint32_t stream);
  // The server has ended the stream, so gRPC drops what is received of it.
  void EndByServer(uint32_t stream);

  // Returns the bytes received of unfinished messages, without the first window of each stream.
  int64_t beyond_first_windows() const { return beyond_first_windows_; }
  // Returns the bytes received of the unfinished message that has most of them.
  int64_t largest() const;
  // Returns the number of the newest streams that together have received so many of the bytes.
  int64_t NewestHolding(int64_t bytes) const;

 private:
  struct Stream {
    uint32_t id = 0;
    bool ended_by_server = false;
    int prefix_bytes = 0;  // received
    uint32_t length = 0;   // of the message, once its prefix is complete
    int64_t received = 0;  // of the message
  };

  std::vector<Stream>::iterator LowerBound(uint32_t id);
  Stream* Find(uint32_t id);  // null: it is not open
  void SetReceived(Stream& stream, int64_t bytes);

  std::vector<Stream> streams_;  // that the client has begun and not ended, by id
  int64_t beyond_first_windows_ = 0;
};

}  // namespace attendant::server
