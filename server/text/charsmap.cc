#include "server/text/charsmap.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/text/base/unicode.h"

namespace attendant::text {
namespace {

// A unit of a double array, as darts-clone stores it.
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t Offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

// Clusters of this many bytes, or more, are replaced character by character.
constexpr size_t kLongCluster = 6;
constexpr size_t kMaxReplacement = 64;  // bytes

uint32_t ReadUnit(absl::string_view bytes, size_t at) {
  uint32_t unit = 0;
  for (int i = 3; i >= 0; --i) unit = unit << 8 | static_cast<unsigned char>(bytes[at + i]);
  return unit;
}

bool IsHangulL(char32_t c) { return (c >= 0x1100 && c < 0x1160) || (c >= 0xA960 && c < 0xA97D); }
bool IsHangulV(char32_t c) { return (c >= 0x1160 && c < 0x11A8) || (c >= 0xD7B0 && c < 0xD7C7); }
bool IsHangulT(char32_t c) { return (c >= 0x11A8 && c < 0x1200) || (c >= 0xD7CB && c < 0xD7FC); }

bool HangulJoins(char32_t before, char32_t after) {
  const bool is_lv = IsHangulSyllable(before) && (before - kHangulBase) % kHangulTs == 0;
  if (IsHangulL(before)) return IsHangulL(after) || IsHangulV(after) || IsHangulSyllable(after);
  if (IsHangulV(before) || is_lv) return IsHangulV(after) || IsHangulT(after);
  return (IsHangulT(before) || IsHangulSyllable(before)) && IsHangulT(after);
}

// Whether two characters are in one grapheme cluster. Emoji sequences and conjuncts of Indic
// scripts are not covered; they are too long to be replaced as a whole.
bool SameCluster(char32_t before, char32_t after) {
  if (before == '\r') return after == '\n';
  const uint16_t* flags = CodeFlags();
  if (HasFlag(flags, after, kJoinsBefore)) return !EndsCluster(before);
  if (HasFlag(flags, before, kJoinsAfter)) return after != '\r' && !EndsCluster(after);
  return HangulJoins(before, after);
}

}  // namespace

absl::StatusOr<Charsmap> Charsmap::Parse(absl::string_view base64, absl::string_view field) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": expected a character map in base64; got ", why));
  };
  std::string bytes;
  if (!absl::Base64Unescape(base64, &bytes)) return refuse("something else");
  if (bytes.size() < 4) return refuse("less than its size");
  const size_t trie_bytes = ReadUnit(bytes, 0) / 4 * size_t{4};
  if (trie_bytes == 0 || trie_bytes > bytes.size() - 4) {
    return refuse(absl::StrCat("a trie of ", trie_bytes, " bytes in ", bytes.size()));
  }
  Charsmap map;
  for (size_t at = 4; at < 4 + trie_bytes; at += 4) map.units_.push_back(ReadUnit(bytes, at));
  map.strings_ = bytes.substr(4 + trie_bytes);
  if (ValidPrefix(map.strings_) != map.strings_.size()) return refuse("strings that are not UTF-8");
  for (const absl::string_view string : absl::StrSplit(map.strings_, '\0')) {
    if (string.size() > kMaxReplacement) {
      return refuse(absl::StrCat("a replacement of ", string.size(), " bytes, the limit is ",
                                 kMaxReplacement));
    }
    map.growth_ = std::max<uint32_t>(map.growth_, ToCodes(string).size());
  }
  for (int code = 0; code < 128; ++code) {
    const char c = static_cast<char>(code);
    map.ascii_stays_[code] = !map.Find(absl::string_view(&c, 1)).has_value();
  }
  return map;
}

std::optional<absl::string_view> Charsmap::Find(absl::string_view text) const {
  size_t node = Offset(units_[0]);
  for (const char c : text) {
    const uint32_t byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || Label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= Offset(unit);
    if (node >= units_.size()) break;
    if (!HasLeaf(unit)) continue;
    const uint32_t at = Value(units_[node]);
    if (at > strings_.size() || (at < strings_.size() && (strings_[at] & 0xC0) == 0x80)) break;
    const absl::string_view rest = absl::string_view(strings_).substr(at);
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

bool Charsmap::Replace(ItemSpan part, std::vector<Change>& changes) const {
  size_t bytes = 0;
  for (const Item& item : part) bytes += Utf8Size(item.code);
  if (bytes >= kLongCluster) return false;
  const std::optional<absl::string_view> with = Find(ToUtf8(part));
  if (!with.has_value()) return false;
  const std::u32string codes = ToCodes(*with);
  for (size_t i = 0; i < codes.size(); ++i) {
    changes.push_back({codes[i], i < part.size() ? 0 : 1});
  }
  if (codes.size() < part.size() && !changes.empty()) {
    changes.back().shift -= static_cast<int32_t>(part.size() - codes.size());
  }
  return true;
}

void Charsmap::Apply(Items& items) const {
  std::vector<Change> changes;
  changes.reserve(items.size());
  bool changed = false;
  for (size_t first = 0; first < items.size();) {
    size_t last = first + 1;
    while (last < items.size() && SameCluster(items[last - 1].code, items[last].code)) ++last;
    if (last - first > 1 && Replace(ItemSpan(items).subspan(first, last - first), changes)) {
      changed = true;
      first = last;
      continue;
    }
    for (; first < last; ++first) {
      const char32_t code = items[first].code;
      const bool stays = code < 128 && ascii_stays_[code];
      if (!stays && Replace(ItemSpan(items).subspan(first, 1), changes)) {
        changed = true;
      } else {
        changes.push_back({code, 0});
      }
    }
  }
  if (changed) ApplyChanges(changes, items);
}

}  // namespace attendant::text
