// Model weights that are tensors, or parts of tensors, of safetensors files.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/base/data_type.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The place of a weight, or of some of its rows: a contiguous run of bytes, because the rows of a
// row-major tensor are adjacent.
struct WeightPlace {
  int file = 0;                             // index among the files
  std::string tensor;                       // its name in the file, for messages
  DataType data_type = DataType::kFloat32;  // a float type
  int64_t offset = 0;                       // bytes from the start of the file
  int64_t elements = 0;
  int64_t transposed_columns = 0;  // columns in the file if the file holds the transpose; else 0
  // The place has no elements of its own in the weight: they are subtracted from its first ones.
  bool is_subtracted = false;
};

// Maps the canonical name of a weight to the places of its rows, from the first row on.
using WeightPlaces = absl::flat_hash_map<std::string, std::vector<WeightPlace>>;

// The values that a reader of files lets through.
struct AllowedValues {
  bool allow_nonfinite = false;
  bool allow_zero_norms = false;  // norms whose weights are all zero
};

// Reads weights from files in chunks, so that it needs little memory besides the target. Refuses
// what only the values show (rule W12 in engine/checkpoint/README.md): NaN and infinities, and norm
// weights that are all zero, unless allowed, and float64 values beyond the range of float32. Also
// refuses a file that has changed since it was opened (W1). Not thread-safe.
class FileWeights : public WeightSource {
 public:
  FileWeights(std::vector<InputFile> files, WeightPlaces places, const AllowedValues& options)
      : files_(std::move(files)), places_(std::move(places)), options_(options) {}

  bool Has(absl::string_view name) const override { return places_.contains(name); }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override;
  absl::StatusOr<bool> ReadStored(absl::string_view name, DataType type,
                                  absl::Span<char> target) override;

 private:
  // Reads a place and subtracts it from the first elements of `target`.
  absl::Status Subtract(const WeightPlace& place, absl::Span<float> target);
  // Returns the places of a weight that must have `expected` elements.
  absl::StatusOr<absl::Span<const WeightPlace>> PlacesOf(absl::string_view name,
                                                         int64_t expected) const;
  absl::Status ReadPlace(const WeightPlace& place, absl::Span<float> target);
  absl::Status ReadChunk(const WeightPlace& place, int64_t first, absl::Span<float> target);
  absl::Status CheckChunk(const WeightPlace& place, int64_t first,
                          absl::Span<const float> values) const;

  const std::vector<InputFile> files_;
  const WeightPlaces places_;
  const AllowedValues options_;
  std::vector<char> chunk_;    // as in the file
  std::vector<float> values_;  // of a chunk that is not converted to where it stays
};

}  // namespace attendant
