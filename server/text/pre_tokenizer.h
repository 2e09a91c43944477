// The "pre_tokenizer" of tokenizer.json, which splits a normalized text into pieces that the model
// tokenizes separately.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/text/base/items.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// Immutable; thread-safe.
struct PreTokenizer {
  // Splits pieces, and may change their items, in linear time.
  std::function<void(Pieces& pieces)> apply = [](Pieces&) {};
  uint32_t growth = 1;        // maximum number of items that replace one
  uint32_t ascii_growth = 1;  // the same for an ASCII item
};

// Loads a pre-tokenizer; null loads one that splits nothing. Returns INVALID_ARGUMENT with the
// invalid key below `field`, and UNIMPLEMENTED for unsupported features.
absl::StatusOr<PreTokenizer> LoadPreTokenizer(const std::optional<JsonValue>& json,
                                              const std::string& field);

}  // namespace attendant::text
