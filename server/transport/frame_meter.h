// FrameMeter, which tells when the frames of an HTTP/2 connection cost more than they bring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant::server {

struct FrameLimits {
  // Of one block of header fields, which gRPC itself refuses from 8 KiB.
  int64_t header_block_bytes = int64_t{64} << 10;
  int continuations = 8;  // frames that a block is continued in

  // Frames that carry nothing: resets, settings, pings, window updates, empty data and the like.
  // A connection may begin with so many,
  double first_frames = 200;
  // gets others with time,
  double frames_per_second = 100;
  // and by being sent answers, of which some callers acknowledge every one.
  double sent_bytes_per_frame = 32;
  double most_saved_frames = 2000;

  // Calls that were begun and that the client has neither ended nor reset, however they have ended
  // here. Twice as many as may be open at a time.
  int64_t half_open_calls = 256;
};

// Reads what a client sends, as far as the heads of its frames (RFC 9113, section 4.1).
//
// gRPC 1.51 collects a block of header fields for as long as it continues (CVE-2023-33953),
// acknowledges every SETTINGS and PING frame whether the other end reads the acknowledgements or
// not, and begins each call before it sees its reset (CVE-2023-44487).
//
// One thread at a time.
class FrameMeter {
 public:
  explicit FrameMeter(absl::Time now, const FrameLimits& limits = {})
      : limits_(limits), frames_left_(limits.first_frames), seen_at_(now) {}

  // Takes what the connection has received next. `sent`: the bytes that have been sent on it so
  // far. Returns false if the connection has to be cut, and ever after.
  bool Accept(absl::string_view received, int64_t sent, absl::Time now);

 private:
  void Save(int64_t sent, absl::Time now);
  bool AcceptFrame();
  bool AcceptHeaders(bool continues, int64_t bytes);

  const FrameLimits limits_;
  double frames_left_;
  absl::Time seen_at_;
  int64_t sent_ = 0;
  bool cut_ = false;

  size_t to_skip_ = 24;  // of a payload, or of the preface that a connection begins with
  std::array<uint8_t, 9> head_ = {};
  size_t head_bytes_ = 0;  // that have come
  int64_t block_bytes_ = 0;
  int continuations_ = 0;
  int64_t half_open_calls_ = 0;
};

}  // namespace attendant::server
