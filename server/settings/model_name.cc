#include "server/settings/model_name.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace attendant::server {
namespace {

constexpr size_t kMostNameBytes = 256;
constexpr absl::string_view kPathWords[] = {"versions", "infer", "ready", "config", "stats"};

struct CharacterRange {
  char32_t first, last;
};

// Characters that are not printed, or as space: controls, spaces, marks of direction and joining.
constexpr CharacterRange kUnprinted[] = {{0, ' '},         {0x7F, 0xA0},       {0xAD, 0xAD},
                                         {0x1680, 0x1680}, {0x2000, 0x200F},   {0x2028, 0x202F},
                                         {0x205F, 0x206F}, {0x3000, 0x3000},   {0xFEFF, 0xFEFF},
                                         {0xFFF0, 0xFFFD}, {0xE0000, 0x1FFFFF}};

// Removes the first character, in strict UTF-8, and returns it; nothing if there is none.
std::optional<char32_t> TakeCharacter(absl::string_view& text) {
  constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};  // by the number of further bytes
  const auto first = static_cast<unsigned char>(text.front());
  const size_t more = first < 0x80 ? 0 : first < 0xC0 ? 4 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  if (more >= text.size() || more > 3 || first >= 0xF8) return std::nullopt;
  char32_t character = more == 0 ? first : first & (0x3F >> more);
  for (const char byte : text.substr(1, more)) {
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    character = character << 6 | (byte & 0x3F);
  }
  const bool is_surrogate = character >= 0xD800 && character < 0xE000;
  if (character < kLeast[more] || is_surrogate) return std::nullopt;
  text.remove_prefix(1 + more);
  return character;
}

bool IsPrinted(absl::string_view text) {
  while (!text.empty()) {
    const std::optional<char32_t> character = TakeCharacter(text);
    if (!character) return false;
    for (const CharacterRange& range : kUnprinted) {
      if (*character >= range.first && *character <= range.last) return false;
    }
  }
  return true;
}

bool IsNumber(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

}  // namespace

bool IsModelName(absl::string_view name) {
  if (name.size() > kMostNameBytes || !IsPrinted(name)) return false;
  if (name.find_first_of(",;=") != name.npos) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  // An empty part counts as a number.
  return std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return IsNumber(part) || part == "." || part == ".." || IsPathWord(part);
  });
}

bool IsPathWord(absl::string_view part) {
  return std::find(std::begin(kPathWords), std::end(kPathWords), part) != std::end(kPathWords);
}

}  // namespace attendant::server
