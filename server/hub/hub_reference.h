// HubReference, the name of a revision of a repository of the Hugging Face Hub.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

struct HubReference {
  std::string repository;         // "ORG/REPO", or "REPO" as the oldest ones have it
  std::string revision = "main";  // a branch, a tag, refs/pr/NUMBER or a commit

  bool operator==(const HubReference&) const = default;
};

// Parses "ORG/REPO[@REVISION]", by the rules of the Hub's own library. INVALID_ARGUMENT says what
// was expected.
absl::StatusOr<HubReference> ParseHubReference(absl::string_view text);

// Returns "hf:ORG/REPO[@REVISION]", without the revision if it is the default.
std::string ToText(const HubReference& reference);

// Returns whether the source of a model begins with "hf:".
bool IsHubSource(absl::string_view source);

// Parses a source for which IsHubSource holds.
absl::StatusOr<HubReference> ParseHubSource(absl::string_view source);

// Returns whether the text could be meant for a repository of the Hub: "ORG/REPO[@REVISION]". Paths
// that begin with "/", "./", "../" or "~" are not.
bool LooksLikeRepository(absl::string_view text);

// Returns whether the text is a whole commit: 40 lower-case hexadecimal digits.
bool IsCommit(absl::string_view text);

// Returns whether the text consists of `digits` lower-case hexadecimal digits.
bool IsHex(absl::string_view text, size_t digits);

}  // namespace attendant::server
