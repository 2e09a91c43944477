#include "server/hub/hub_reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant::server {
namespace {

constexpr absl::string_view kHubPrefix = "hf:";
constexpr size_t kMostNameBytes = 96, kMostRevisionBytes = 255;

bool IsWordCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Returns whether a user, an organization or a repository may have that name.
bool IsHubName(absl::string_view name) {
  if (name.empty() || name.size() > kMostNameBytes) return false;
  return IsWordCharacter(name.front()) && IsWordCharacter(name.back()) &&
         !absl::StrContains(name, "--") && !absl::StrContains(name, "..") &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsWordCharacter(c) || c == '-' || c == '.'; });
}

// A revision becomes a path below refs of the cache.
bool IsRevision(absl::string_view revision) {
  if (revision.empty() || revision.size() > kMostRevisionBytes) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(revision, '/');
  return std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return !part.empty() && part.front() != '.' &&
           std::all_of(part.begin(), part.end(), [](char c) {
             return IsWordCharacter(c) || c == '-' || c == '.' || c == '+';
           });
  });
}

}  // namespace

absl::StatusOr<HubReference> ParseHubReference(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('@', 1));
  const std::vector<absl::string_view> names = absl::StrSplit(parts.first, '/');
  if (names.size() > 2 || !std::all_of(names.begin(), names.end(), IsHubName) ||
      absl::EndsWith(parts.first, ".git")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected ORG/REPO[@REVISION], a repository of the Hugging Face Hub; got \"", text, "\""));
  }
  HubReference reference = {std::string(parts.first)};
  if (!absl::StrContains(text, '@')) return reference;
  if (!IsRevision(parts.second)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a branch, a tag, refs/pr/NUMBER or a commit after @; got \"",
                     parts.second, "\""));
  }
  reference.revision = std::string(parts.second);
  return reference;
}

std::string ToText(const HubReference& reference) {
  const std::string text = absl::StrCat(kHubPrefix, reference.repository);
  if (reference.revision == HubReference().revision) return text;
  return absl::StrCat(text, "@", reference.revision);
}

bool IsHubSource(absl::string_view source) { return absl::StartsWith(source, kHubPrefix); }

absl::StatusOr<HubReference> ParseHubSource(absl::string_view source) {
  return ParseHubReference(absl::StripPrefix(source, kHubPrefix));
}

bool LooksLikeRepository(absl::string_view text) {
  return absl::StrContains(text, '/') && ParseHubReference(text).ok();
}

bool IsCommit(absl::string_view text) { return IsHex(text, 40); }

bool IsHex(absl::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

}  // namespace attendant::server
