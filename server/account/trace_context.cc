#include "server/account/trace_context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

// version "-" trace-id "-" parent-id "-" flags, in hexadecimal digits.
constexpr size_t kVersion = 2, kTraceId = 32, kParentId = 16, kFlags = 2;
constexpr size_t kSize = kVersion + 1 + kTraceId + 1 + kParentId + 1 + kFlags;

bool IsDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool AreDigits(absl::string_view text) { return std::all_of(text.begin(), text.end(), IsDigit); }

bool AreZero(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

// Takes a field of digits and the dash after it, which is absent at the end of the text. Returns an
// empty string if there is no such field.
absl::string_view TakeField(absl::string_view& text, size_t size) {
  const absl::string_view field = text.substr(0, size);
  if (field.size() < size || !AreDigits(field)) return "";
  text.remove_prefix(size);
  if (text.empty()) return field;
  if (text[0] != '-') return "";
  text.remove_prefix(1);
  return field;
}

}  // namespace

std::string ParseTraceParent(absl::string_view text) {
  const bool more = text.size() > kSize;
  const absl::string_view version = TakeField(text, kVersion);
  const absl::string_view trace = TakeField(text, kTraceId);
  const absl::string_view parent = TakeField(text, kParentId);
  const absl::string_view flags = TakeField(text, kFlags);
  if (version.empty() || trace.empty() || parent.empty() || flags.empty()) return "";
  if (version == "ff" || AreZero(trace) || AreZero(parent)) return "";
  if (more && version == "00") return "";  // only newer versions may have further fields
  return absl::StrCat("00-", trace, "-", parent, "-", flags);
}

}  // namespace attendant::server
