// The "normalizer" of tokenizer.json: what is done to a text before it is split.
#pragma once

#include <memory>
#include <string>

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
  // The same for an item of ASCII.
  virtual uint32_t ascii_growth() const { return 1; }

  // An estimate of the memory that tables take.
  virtual size_t memory_bytes() const { return 0; }
};

// Reads a normalizer; null gives one that changes nothing. INVALID_ARGUMENT names the key below
// `field` that is not as expected, UNIMPLEMENTED what is not supported.
absl::StatusOr<std::unique_ptr<Normalizer>> LoadNormalizer(JsonValue json,
                                                           const std::string& field);

// Normalizers that settings beside the file add.
std::unique_ptr<Normalizer> LowercaseBefore(std::unique_ptr<Normalizer> next);

}  // namespace attendant::text
