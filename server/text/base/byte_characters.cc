#include "server/text/base/byte_characters.h"

#include <string>
#include <vector>

namespace attendant::text {
namespace {

std::vector<char16_t> MakeByteCharacters() {
  std::vector<char16_t> characters(256);
  char16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    characters[byte] = prints ? static_cast<char16_t>(byte) : next++;
  }
  return characters;
}

}  // namespace

const char16_t* ByteCharacters() {
  static const std::vector<char16_t>* const characters =
      new std::vector<char16_t>(MakeByteCharacters());
  return characters->data();
}

void ToByteCharacters(ItemSpan text, Items& out) {
  const char16_t* characters = ByteCharacters();
  std::string bytes;
  for (const Item& item : text) {
    if (item.code < 0x80) {
      out.push_back({characters[item.code], item.begin, item.end});
      continue;
    }
    bytes.clear();
    AppendUtf8(item.code, bytes);
    for (const char byte : bytes) {
      out.push_back({characters[static_cast<unsigned char>(byte)], item.begin, item.end});
    }
  }
}

}  // namespace attendant::text
