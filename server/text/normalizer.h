// The "normalizer" of tokenizer.json: what is done to a text before it is split.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/text/base/items.h"
#include "server/text/base/json_tree.h"

namespace attendant::text {

// Immutable; thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // Changes the text in place. Takes linear time.
  virtual void Apply(Items& items) const = 0;

  // The most items that one may become.
  virtual uint32_t growth() const { return 1; }

  // An estimate of the memory that tables take.
  virtual size_t memory_bytes() const { return 0; }
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
absl::StatusOr<std::unique_ptr<Normalizer>> LoadNormalizer(JsonValue json,
                                                           const std::string& field);

// Normalizers that settings beside the file add.
std::unique_ptr<Normalizer> LowercaseBefore(std::unique_ptr<Normalizer> next);

}  // namespace attendant::text
