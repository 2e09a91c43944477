// Frames of HTTP/2 (RFC 9113) and fields of HPACK (RFC 7541), written by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/http2_frames.h"

namespace attendant::flood {

using enum http2::FrameType;
using http2::FrameType;
using http2::kAck;
using http2::kEndHeaders;
using http2::kEndStream;

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
