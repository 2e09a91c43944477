// The "pre_tokenizer" of tokenizer.json: how a normalized text is split into pieces, each of which
// the model tokenizes by itself.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/text/base/items.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// Immutable; thread-safe.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Splits pieces of text, and may change their items. Takes linear time.
  virtual void Apply(Pieces& pieces) const = 0;

  // The most items that one may become.
  virtual uint32_t growth() const { return 1; }
  // The same for an item of ASCII.
  virtual uint32_t ascii_growth() const { return 1; }
};

// Reads a pre-tokenizer; null gives one that splits nothing. INVALID_ARGUMENT names the key below
// `field` that is not as expected, UNIMPLEMENTED what is not supported.
absl::StatusOr<std::unique_ptr<PreTokenizer>> LoadPreTokenizer(JsonValue json,
                                                               const std::string& field);

}  // namespace attendant::text
