// Routing: the experts that each row passes through, and the places of each expert's rows.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/matrix_view.h"
#include "engine/model/model_description.h"

namespace attendant {

// An expert that a row goes through.
struct ExpertChoice {
  int32_t expert;
  int32_t place;  // of the row among the rows of all experts
  float weight;   // the expert's probability
};

// The memory for some rows at a time, allocated once. Without experts it takes none.
//
// The rows of the experts are one after the other: first all rows of expert 0, in their order in
// the batch, then those of expert 1, and so on. Those of each expert begin at a multiple of
// kRowTile, so that a matrix product can take them as they are.
class Routing {
 public:
  // `rows` is the largest number of rows at a time.
  Routing(const MixtureShape& shape, int64_t rows);

  // The bytes that the constructor allocates, and the number of places that the rows of all experts
  // take at most.
  static CheckedSize Bytes(const MixtureShape& shape, CheckedSize rows);
  static CheckedSize MostPlaces(const MixtureShape& shape, CheckedSize rows);

  // The room for the scores that the router gives the experts, [rows, experts].
  MatrixView<float> scores(int64_t rows);

  // Chooses the experts of a row: those with the largest probabilities, softmax(scores), of equal
  // ones that with the lower number. If a score is NaN, all weights of the row are. Several threads
  // may choose for different rows at the same time.
  void Choose(int64_t row);

  // Gives each of the first `rows` rows, for which experts must have been chosen, its places.
  void AssignPlaces(int64_t rows);

  // The experts of a row, in ascending order.
  absl::Span<const ExpertChoice> choices(int64_t row) const;

  // The places of an expert are [begin, begin + rows).
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
