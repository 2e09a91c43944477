// SentencePiece's character map ("precompiled_charsmap"): a trie of keys and their replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/items.h"
#include "server/text/normal_form.h"

namespace attendant::text {

// Immutable; thread-safe.
class Charsmap {
 public:
  // Parses a base64 map. Returns INVALID_ARGUMENT with `field`.
  static absl::StatusOr<Charsmap> Parse(absl::string_view base64, absl::string_view field);

  // Replaces characters, and short grapheme clusters as a whole.
  void Apply(Items& items) const;

  // The maximum number of characters that replace one.
  uint32_t growth() const { return growth_; }

 private:
  // Returns the replacement of the shortest key that is a prefix of `text`, if any.
  std::optional<absl::string_view> Find(absl::string_view text) const;
  // Appends the changes that replace `part`; returns false if the map does not change it.
  bool Replace(ItemSpan part, std::vector<Change>& changes) const;

  std::vector<uint32_t> units_;
  std::string strings_;  // NUL-terminated each
  uint32_t growth_ = 1;
  bool ascii_stays_[128] = {};
};

}  // namespace attendant::text
