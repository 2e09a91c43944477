// Writes attention probabilities in the forms of the response.
#pragma once

#include <cstdint>

#include "engine/base/matrix_view.h"
#include "server/tensors/response_tensor.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// The engine's probabilities of one layer for some sequences of a request, back to back: [heads,
// length, keys] each. `keys` may hold a single sequence for all.
struct DenseProbabilities {
  const TokenLayout& layout;
  const TokenLayout& keys;
  int64_t heads;
  float* data;
  int64_t first_sequence = 0;      // of the request
  int64_t first_key_sequence = 0;  // of `keys`

  int64_t key_sequence(int64_t sequence) const {
    return keys.sequences == 1 ? 0 : first_key_sequence + sequence;
  }
  absl::Span<const int32_t> keys_of(int64_t sequence) const {
    return keys.positions_of(key_sequence(sequence));
  }
};

// The functions below write exactly the elements of these sequences. B is the number of sequences
// in the request.

// Writes [B, heads, S, M], where M is the padded length of the keys; zeros for padded queries or
// keys.
void ScatterProbabilities(const DenseProbabilities& dense, ResponseTensor& target);

// Averages over the heads in place; the result has one head.
DenseProbabilities AverageHeads(const DenseProbabilities& dense);

// Writes the k largest probabilities of each query, [B, heads, S, k], in descending order (ties by
// ascending key, NaN last), and the padded columns of their keys, int32. Writes zeros and -1 for
// missing keys and for padding.
void ScatterTopKeys(const DenseProbabilities& dense, ResponseTensor& probabilities,
                    ResponseTensor& keys);

// Writes each probability times its value, where queries and keys are the same tokens: [B, heads, S
// of keys, S of queries, Dv], given values [T, heads Dv]. Zeros for padded queries or keys.
void ScatterWeightedValues(const DenseProbabilities& dense, MatrixView<const float> values,
                           ResponseTensor& target);

}  // namespace attendant::server
