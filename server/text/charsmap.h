// SentencePiece's map of characters ("precompiled_charsmap"): a trie of keys and their
// replacements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/items.h"
#include "server/text/base/memory.h"
#include "server/text/normal_form.h"

namespace attendant::text {

// Immutable; thread-safe.
class Charsmap {
 public:
  // Reads the map from base64. INVALID_ARGUMENT names `field`.
  static absl::StatusOr<Charsmap> Parse(absl::string_view base64, absl::string_view field);

  // Replaces characters, and short grapheme clusters whole.
  void Apply(Items& items) const;

  // The most characters that a character may become.
  uint32_t growth() const { return growth_; }

  size_t heap_bytes() const { return HeapBytes(units_) + HeapBytes(strings_); }

 private:
  // The replacement of the shortest key that `text` begins with, if there is one.
  std::optional<absl::string_view> Find(absl::string_view text) const;
  // Adds the changes that replace `part`; returns false if the map leaves it as it is.
  bool Replace(ItemSpan part, std::vector<Change>& changes) const;

  std::vector<uint32_t> units_;
  std::string strings_;  // each ends with a NUL
  uint32_t growth_ = 1;
  bool ascii_stays_[128] = {};
};

}  // namespace attendant::text
