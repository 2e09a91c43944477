// The weights of a model that are tensors, or parts of tensors, of safetensors files.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/base/data_type.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/model/weight_source.h"

namespace attendant {

// Where a weight, or some of its rows, is: a run of bytes, since rows of a row-major tensor are
// back to back.
struct WeightPlace {
  int file = 0;                             // index of the file
  std::string tensor;                       // its name there, for messages
  DataType data_type = DataType::kFloat32;  // a float type
  int64_t offset = 0;                       // bytes from the start of the file
  int64_t elements = 0;
  int64_t transposed_columns = 0;  // columns of a matrix of which the weight is the transpose, or 0
};

// By canonical name; the places of a weight's rows, from the first on.
using WeightPlaces = absl::flat_hash_map<std::string, std::vector<WeightPlace>>;

// Reads in chunks, so that nothing but the target grows with the tensor. Refuses what only the
// values show: NaN and infinities unless allowed, float64 beyond float32, norm weights that
// are all zero; and a file that is no longer the one that was opened.
class FileWeights : public WeightSource {
 public:
  FileWeights(std::vector<InputFile> files, WeightPlaces places, bool allow_nonfinite)
      : files_(std::move(files)), places_(std::move(places)), allow_nonfinite_(allow_nonfinite) {}

  bool Has(absl::string_view name) const override { return places_.contains(name); }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override;

 private:
  absl::Status ReadPlace(const WeightPlace& place, absl::Span<float> target);
  absl::Status ReadChunk(const WeightPlace& place, int64_t first, absl::Span<float> target);
  absl::Status CheckChunk(const WeightPlace& place, int64_t first,
                          absl::Span<const float> values) const;

  const std::vector<InputFile> files_;
  const WeightPlaces places_;
  const bool allow_nonfinite_;
  std::vector<char> chunk_;
  std::vector<float> transposed_;  // a chunk of a matrix to be transposed
};

}  // namespace attendant
