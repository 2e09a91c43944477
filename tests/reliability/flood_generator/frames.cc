#include "tests/reliability/flood_generator/frames.h"

#include <initializer_list>
#include <utility>

namespace attendant::flood {

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload) {
  const auto size = static_cast<uint32_t>(payload.size());
  std::string frame = {static_cast<char>(size >> 16),
                       static_cast<char>(size >> 8),
                       static_cast<char>(size),
                       static_cast<char>(type),
                       static_cast<char>(flags),
                       0,
                       0,
                       0,
                       0};
  SetStream(stream, frame.data());
  return frame.append(payload);
}

void SetStream(uint32_t stream, char* frame) {
  for (int byte = 0; byte < 4; ++byte) {
    frame[kStreamOffset + byte] = static_cast<char>(stream >> (24 - 8 * byte));
  }
}

uint32_t ReadUint32(const char* bytes) {
  uint32_t value = 0;
  for (int byte = 0; byte < 4; ++byte) value = value << 8 | static_cast<uint8_t>(bytes[byte]);
  return value;
}

std::string Hello() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0); }

std::string CallFields(std::string_view path, char kind) {
  std::string block = "\x83\x86";  // :method POST, :scheme http
  for (const auto& [name, value] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {":path", path},
           {":authority", "test"},
           {"content-type", "application/grpc"},
           {"te", "trailers"}}) {
    block += kind;
    block += static_cast<char>(name.size());
    block += name;
    block += static_cast<char>(value.size());
    block += value;
  }
  return block;
}

}  // namespace attendant::flood
