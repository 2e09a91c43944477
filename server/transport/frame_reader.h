// FrameReader, which finds the HTTP/2 frames in what one end of a connection sends.
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

    // Returns whether its sender sends nothing more on the stream.
    bool ends_stream() const {
      const bool may_end = type == kDataFrame || type == kHeadersFrame;
      return type == kResetFrame || (may_end && (flags & kEndStreamFlag) != 0);
    }
  };

  // The first `preface` bytes are not frames.
  explicit FrameReader(size_t preface) : to_come_(preface) {}

  // Removes a part of `bytes`, which must not be empty, from its front: at most one frame header,
  // or what is there of a payload. Returns true if a frame header has just become complete.
  // Otherwise, `payload` is what has been removed of the payload of frame().
  bool Read(absl::string_view& bytes, absl::string_view& payload);

  // The frame whose header was complete last.
  const Frame& frame() const { return frame_; }
  // Returns whether all of frame() has been read.
  bool complete() const { return to_come_ == 0; }

 private:
  size_t to_come_;  // bytes of a payload, at first of the preface
  std::array<uint8_t, 9> header_ = {};
  size_t header_bytes_ = 0;  // received
  Frame frame_;
};

}  // namespace attendant::server
