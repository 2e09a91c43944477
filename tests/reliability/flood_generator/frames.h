// Frames of HTTP/2 (RFC 9113) and fields of HPACK (RFC 7541), written by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace attendant::flood {

enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kWindowUpdate = 8,
  kContinuation = 9,
};

constexpr uint8_t kAck = 1;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr size_t kFrameHead = 9;  // bytes
constexpr size_t kStreamOffset = 5;

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload = {});

// Puts the number of a stream into the head of a frame.
void SetStream(uint32_t stream, char* frame);

// Big-endian.
uint32_t ReadUint32(const char* bytes);

// The first bytes of a client: the preface and empty settings.
std::string Hello();

// The fields of a call of `path` up to its first message, each a literal that `kind` begins: 0x00
// does not enter the dynamic table, 0x40 does. :method and :scheme are in the static table.
std::string CallFields(std::string_view path, char kind);

}  // namespace attendant::flood
