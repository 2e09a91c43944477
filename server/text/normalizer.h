// The "normalizer" of tokenizer.json, which changes a text before it is split.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/base/items.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// Immutable; thread-safe.
struct Normalizer {
  // Changes a text in place, in linear time.
  std::function<void(Items& items)> apply = [](Items&) {};
  uint32_t growth = 1;  // maximum number of items that replace one
};

// The number of items that a code point becomes, computed when it first occurs. Thread-safe.
class CodeGrowth {
 public:
  // `normalizer` must outlive this object.
  explicit CodeGrowth(const Normalizer& normalizer);

  // Returns the maximum number of items that `code` becomes, including intermediate forms.
  uint32_t Of(char32_t code) const;

 private:
  uint32_t Measure(char32_t code) const;

  const Normalizer& normalizer_;
  // For code points up to U+FFFF; 0 if not computed. Empty if none grows.
  mutable std::vector<std::atomic<uint8_t>> known_;
};

// Loads a normalizer; null loads one that changes nothing. Returns INVALID_ARGUMENT with the
// invalid key below `field`, and UNIMPLEMENTED for unsupported features.
absl::StatusOr<Normalizer> LoadNormalizer(const std::optional<JsonValue>& json,
                                          const std::string& field);

// Normalizers added by settings outside the file.
Normalizer LowercaseBefore(Normalizer next);

}  // namespace attendant::text
