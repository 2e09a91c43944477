// HubReference, the name of a revision of a repository of the Hugging Face Hub.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::server {

struct HubReference {
  std::string repository;         // "ORG/REPO", or "REPO" for the oldest ones
  std::string revision = "main";  // a branch, a tag, refs/pr/NUMBER or a commit

  bool operator==(const HubReference&) const = default;
};

// Parses "ORG/REPO[@REVISION]", by the rules of the Hub's own library. Returns INVALID_ARGUMENT
// with the expected form.
absl::StatusOr<HubReference> ParseHubReference(absl::string_view text);

// Returns "hf:ORG/REPO[@REVISION]", without the revision if it is the default.
std::string ToText(const HubReference& reference);

// Returns whether the source of a model begins with "hf:".
bool IsHubSource(absl::string_view source);

// Parses a source that satisfies IsHubSource.
absl::StatusOr<HubReference> ParseHubSource(absl::string_view source);

// Returns whether the text looks like a repository of the Hub, "ORG/REPO[@REVISION]", and not like
// a path that begins with "/", "./", "../" or "~".
bool LooksLikeRepository(absl::string_view text);

// Returns whether the text is a whole commit: 40 lower-case hexadecimal digits.
bool IsCommit(absl::string_view text);

// Returns whether the text consists of `digits` lower-case hexadecimal digits.
bool IsHex(absl::string_view text, size_t digits);

}  // namespace attendant::server
