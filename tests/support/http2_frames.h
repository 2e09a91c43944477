// HTTP/2 frame types and flags (RFC 9113, section 6), for tests that write frames by hand.
#pragma once

#include <cstdint>

namespace attendant::http2 {

enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};

inline constexpr uint8_t kEndStream = 1;  // of DATA and HEADERS
inline constexpr uint8_t kAck = 1;        // of SETTINGS and PING
inline constexpr uint8_t kEndHeaders = 4;

}  // namespace attendant::http2
