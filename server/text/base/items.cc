#include "server/text/base/items.h"

namespace attendant::text {
namespace {

constexpr char32_t kInvalid = 0xFFFFFFFF;

// Reads the non-ASCII code point at `at`, and advances past it.
char32_t ReadCode(absl::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < size) return kInvalid;
  char32_t code = lead & (0x7F >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return kInvalid;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const char32_t least = size == 4 ? 0x10000 : size == 3 ? 0x800 : 0x80;
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return kInvalid;
  at += size;
  return code;
}

}  // namespace

bool AppendItems(absl::string_view text, Items& items) {
  items.reserve(items.size() + text.size());
  for (size_t at = 0; at < text.size();) {
    const uint32_t begin = static_cast<uint32_t>(at);
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      items.push_back({lead, begin, begin + 1});
      ++at;
      continue;
    }
    const char32_t code = ReadCode(text, at);
    if (code == kInvalid) return false;
    items.push_back({code, begin, static_cast<uint32_t>(at)});
  }
  return true;
}

void ForEachCode(absl::string_view text, absl::FunctionRef<void(char32_t code)> take) {
  for (size_t at = 0; at < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    const char32_t code = lead < 0x80 ? kInvalid : ReadCode(text, at);
    if (code == kInvalid) ++at;
    take(code != kInvalid ? code : lead < 0x80 ? char32_t{lead} : U'\uFFFD');
  }
}

size_t ValidPrefix(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
    } else if (ReadCode(text, at) == kInvalid) {
      break;
    }
  }
  return at;
}

void AppendUtf8(char32_t code, std::string& text) {
  const auto add = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

std::string ToUtf8(ItemSpan items) {
  std::string text;
  text.reserve(items.size());
  for (const Item& item : items) AppendUtf8(item.code, text);
  return text;
}

std::u32string ToCodes(absl::string_view text) {
  Items items;
  AppendItems(text, items);
  std::u32string codes;
  codes.reserve(items.size());
  for (const Item& item : items) codes.push_back(item.code);
  return codes;
}

void PieceBytes::Assign(ItemSpan items) {
  bytes_.resize(items.size());
  char32_t all = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    all |= items[i].code;
    bytes_[i] = static_cast<char>(items[i].code);
  }
  ascii_ = all < 0x80;
  if (ascii_) return;
  bytes_.clear();
  item_at_.clear();
  for (size_t i = 0; i < items.size(); ++i) {
    AppendUtf8(items[i].code, bytes_);
    item_at_.resize(bytes_.size(), static_cast<uint32_t>(i));
  }
}

}  // namespace attendant::text
