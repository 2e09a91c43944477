#include "server/settings/model_name.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "server/text/base/items.h"

namespace attendant::server {
namespace {

constexpr size_t kMostNameBytes = 256;
constexpr absl::string_view kPathWords[] = {"versions", "infer", "ready", "config", "stats"};

// Ranges of characters that are not printed, or as space: controls, spaces, marks of direction and
// joining.
constexpr std::pair<char32_t, char32_t> kUnprinted[] = {
    {0, ' '},         {0x7F, 0xA0},     {0xAD, 0xAD},       {0x1680, 0x1680},
    {0x2000, 0x200F}, {0x2028, 0x202F}, {0x205F, 0x206F},   {0x3000, 0x3000},
    {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFD}, {0xE0000, 0x1FFFFF}};

bool IsPrinted(absl::string_view text) {
  text::Items items;
  if (!text::AppendItems(text, items)) return false;
  return std::none_of(items.begin(), items.end(), [](const text::Item& item) {
    return std::any_of(std::begin(kUnprinted), std::end(kUnprinted), [&](const auto& range) {
      return item.code >= range.first && item.code <= range.second;
    });
  });
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
