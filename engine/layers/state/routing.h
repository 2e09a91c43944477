// Routing: the experts that each row passes through, and the layout of the experts' inputs.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/matrix_view.h"
#include "engine/model/model_description.h"

namespace attendant {

// An expert that a row passes through.
struct ExpertChoice {
  int32_t expert;
  int32_t place;  // index of the row in the input of all experts
  float weight;   // the expert's probability
};

// The input of the experts is a matrix that has the rows of expert 0 first, in batch order, then
// the rows of expert 1, and so on.
//
// Allocates its memory once, and none without experts. Only Choose is thread-safe, for different
// rows.
class Routing {
 public:
  // `rows` is the largest number of rows that are routed at a time.
  Routing(const MixtureShape& shape, int64_t rows);

  // Return the bytes that the constructor allocates, and the number of places that the rows of all
  // experts take, with the further rows that a product may read (kRowTile).
  static CheckedSize Bytes(const MixtureShape& shape, CheckedSize rows);
  static CheckedSize MostPlaces(const MixtureShape& shape, CheckedSize rows);

  // The buffer for the router's scores, [rows, experts].
  MatrixView<float> scores(int64_t rows);

  // Chooses the experts of a row: those with the largest probabilities, softmax(scores). Ties go to
  // the lower number. If a score is NaN, all weights of the row are NaN. Overwrites the scores of
  // the row.
  void Choose(int64_t row);

  // Assigns places to the first `rows` rows, after Choose was called for each.
  void AssignPlaces(int64_t rows);

  // The experts of a row, in ascending order.
  absl::Span<const ExpertChoice> choices(int64_t row) const;

  // Expert `expert` has the places [begin(expert), begin(expert) + rows(expert)).
  int64_t begin(int64_t expert) const { return begins_[expert]; }
  int64_t rows(int64_t expert) const { return counts_[expert]; }

  int64_t bytes() const {
    return scores_.bytes() + choices_.bytes() + begins_.bytes() + counts_.bytes();
  }

 private:
  MixtureShape shape_;
  AlignedBuffer<float> scores_;          // [rows, experts]
  AlignedBuffer<ExpertChoice> choices_;  // [rows, per_token]
  AlignedBuffer<int64_t> begins_;        // [experts]
  AlignedBuffer<int64_t> counts_;        // [experts]
};

}  // namespace attendant
