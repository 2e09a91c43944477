// FrameReader, which finds the HTTP/2 frames sent by one end of a connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace attendant::server {

// Frame types and a flag (RFC 9113, section 6).
inline constexpr uint8_t kDataFrame = 0, kHeadersFrame = 1, kResetFrame = 3, kWindowUpdateFrame = 8,
                         kContinuationFrame = 9;
inline constexpr uint8_t kEndStreamFlag = 1;

// Not thread-safe.
class FrameReader {
 public:
  struct Frame {
    size_t length = 0;  // bytes of its payload
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;

    // Returns whether its sender ends the stream with it.
    bool ends_stream() const {
      const bool may_end = type == kDataFrame || type == kHeadersFrame;
      return type == kResetFrame || (may_end && (flags & kEndStreamFlag) != 0);
    }
  };

  // The first `preface` bytes are not frames.
  explicit FrameReader(size_t preface) : to_come_(preface) {}

  // Removes a prefix of the non-empty `bytes`: at most one frame header, or the available part of a
  // payload. Returns true if it completes a frame header. Otherwise, `payload` is the removed part
  // of frame()'s payload.
  bool Read(absl::string_view& bytes, absl::string_view& payload);

  // The frame with the latest complete header.
  const Frame& frame() const { return frame_; }
  // Returns whether all of frame() has been read.
  bool complete() const { return to_come_ == 0; }

 private:
  size_t to_come_;  // remaining bytes of the payload, initially of the preface
  std::array<uint8_t, 9> header_ = {};
  size_t header_bytes_ = 0;  // received
  Frame frame_;
};

}  // namespace attendant::server
