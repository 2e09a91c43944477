#include "server/account/trace_context.h"

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

// Where version 00 has dashes: version "-" trace-id "-" parent-id "-" flags, in hexadecimal digits.
constexpr size_t kTrace = 2, kParent = 35, kFlags = 52, kSize = 55;

bool IsDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool AreZero(absl::string_view text) { return text.find_first_not_of('0') == text.npos; }

}  // namespace

std::string ParseTraceParent(absl::string_view text) {
  if (text.size() < kSize) return "";
  for (size_t i = 0; i < kSize; ++i) {
    const bool is_dash = i == kTrace || i == kParent || i == kFlags;
    if (is_dash ? text[i] != '-' : !IsDigit(text[i])) return "";
  }
  // Only newer versions may have further fields.
  const absl::string_view version = text.substr(0, kTrace), more = text.substr(kSize);
  if (version == "ff" || (!more.empty() && (version == "00" || more[0] != '-'))) return "";
  if (AreZero(text.substr(kTrace + 1, kParent - kTrace - 1))) return "";
  if (AreZero(text.substr(kParent + 1, kFlags - kParent - 1))) return "";
  return absl::StrCat("00", text.substr(kTrace, kSize - kTrace));
}

}  // namespace attendant::server
