// The "normalizer" of tokenizer.json: what is done to a text before it is split.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/base/items.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// Immutable; thread-safe.
struct Normalizer {
  // Changes a text in place. Takes linear time.
  std::function<void(Items& items)> apply = [](Items&) {};
  uint32_t growth = 1;      // the most items that one may become
  size_t memory_bytes = 0;  // an estimate, of tables
};

// The number of items that a code point becomes: asks the normalizer once for each, when it
// first occurs. Thread-safe.
class CodeGrowth {
 public:
  // `normalizer` outlives this.
  explicit CodeGrowth(const Normalizer& normalizer);

  // The most items that `code` becomes, on the way to its normal form too.
  uint32_t Of(char32_t code) const;

  size_t heap_bytes() const { return known_.size(); }

 private:
  uint32_t Measure(char32_t code) const;

  const Normalizer& normalizer_;
  // Of the code points up to U+FFFF; 0: it has not been asked for. Empty if none grows.
  mutable std::vector<std::atomic<uint8_t>> known_;
};

// Reads a normalizer; null gives one that changes nothing. INVALID_ARGUMENT names the key below
// `field` that is not as expected, UNIMPLEMENTED what is not supported.
absl::StatusOr<Normalizer> LoadNormalizer(JsonValue json, const std::string& field);

// Normalizers that settings beside the file add.
Normalizer LowercaseBefore(Normalizer next);

}  // namespace attendant::text
