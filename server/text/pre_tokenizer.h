// The "pre_tokenizer" of tokenizer.json: how a normalized text is split into pieces, each of which
// the model tokenizes by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/text/base/items.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// Immutable; thread-safe.
struct PreTokenizer {
  // Splits pieces of text, and may change their items. Takes linear time.
  std::function<void(Pieces& pieces)> apply = [](Pieces&) {};
  uint32_t growth = 1;        // the most items that one may become
  uint32_t ascii_growth = 1;  // the same for an item of ASCII
};

// Reads a pre-tokenizer; null gives one that splits nothing. INVALID_ARGUMENT names the key below
// `field` that is not as expected, UNIMPLEMENTED what is not supported.
absl::StatusOr<PreTokenizer> LoadPreTokenizer(JsonValue json, const std::string& field);

}  // namespace attendant::text
