// FrameMeter, which detects floods of HTTP/2 frames and counts the bytes of unfinished messages.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/transport/frame_reader.h"
#include "server/transport/unfinished_messages.h"

namespace attendant::server {

struct FrameLimits {
  // Limits of one header block. gRPC's own limit of 8 KiB applies to each frame of the block.
  int64_t header_block_bytes = int64_t{64} << 10;
  int continuations = 8;

  // Control frames: RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, empty DATA and others without
  // payload for a call. A new connection may send this many.
  double first_frames = 200;
  // Additional WINDOW_UPDATE frames for each call. gRPC's clients widen a call's window when they
  // start it, so that many concurrent calls send as many frames before any response.
  int64_t window_updates_per_call = 4;
  // More are allowed over time,
  double frames_per_second = 100;
  // and with responses, because some clients acknowledge each of them.
  double sent_bytes_per_frame = 32;
  double most_saved_frames = 2000;

  // Calls that the client has neither half-closed nor reset, whether or not the server has ended
  // them, except for those with a body that the server has reset: twice HTTP/2's maximum of open
  // streams.
  int64_t half_open_calls = 256;
};

// Follows the frames of a connection in both directions (RFC 9113).
//
// gRPC 1.51 buffers header blocks of any size (CVE-2023-33953), queues acknowledgements of SETTINGS
// and PING frames even if the client does not read them, and starts each call before it reads the
// reset (CVE-2023-44487). It closes connections that pad DATA frames.
//
// Not thread-safe.
class FrameMeter {
 public:
  explicit FrameMeter(absl::Time now, const FrameLimits& limits = {})
      : limits_(limits),
        frames_left_(limits.first_frames),
        seen_at_(now),
        messages_(static_cast<size_t>(limits.half_open_calls)) {}

  // Parses the next bytes from the client. Once it returns false, the connection must be cut, and
  // later calls return false too.
  bool Receive(absl::string_view bytes, absl::Time now);
  // Parses the next bytes from the server.
  void Send(absl::string_view bytes);

  const UnfinishedMessages& messages() const { return messages_; }

 private:
  void Save(absl::Time now);
  bool AcceptFrame(const FrameReader::Frame& frame);
  bool AcceptHeaders(bool continues, int64_t bytes);

  const FrameLimits limits_;
  double frames_left_;
  int64_t window_updates_left_ = 0;  // remaining allowance of calls
  absl::Time seen_at_;
  int64_t sent_ = 0;       // bytes
  int64_t seen_sent_ = 0;  // of `sent_`, already credited
  bool cut_ = false;

  FrameReader received_frames_{/*preface=*/24};
  FrameReader sent_frames_{/*preface=*/0};
  UnfinishedMessages messages_;
  int64_t block_bytes_ = 0;
  int continuations_ = 0;
};

}  // namespace attendant::server
