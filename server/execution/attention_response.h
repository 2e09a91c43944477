// Attention probabilities in the forms in which they are returned.
#pragma once

#include <cstdint>

#include "engine/base/matrix_view.h"
#include "server/tensors/response_tensor.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// The probabilities that the engine gives for some sequences of one request and one layer, back to
// back: probabilities [heads, length, keys] of each. `keys` may have one sequence for all.
struct DenseProbabilities {
  const TokenLayout& layout;
  const TokenLayout& keys;
  int64_t heads;
  float* data;
  int64_t first_sequence = 0;      // of these, in the request
  int64_t first_key_sequence = 0;  // of `keys`, that the first sequence attends to

  int64_t key_sequence(int64_t sequence) const {
    return keys.sequences == 1 ? 0 : first_key_sequence + sequence;
  }
  absl::Span<const int32_t> keys_of(int64_t sequence) const {
    return keys.positions_of(key_sequence(sequence));
  }
};

// The functions below write what belongs to these sequences, all of it, and nothing else. B is the
// number of sequences of the request.

// To [B, heads, S, M], M the padded length of the keys: zeros where query or key is padding.
void ScatterProbabilities(const DenseProbabilities& dense, ResponseTensor& target);

// To their mean over the heads, in place: what is left has one head.
DenseProbabilities AverageHeads(const DenseProbabilities& dense);

// To the k largest of each query, [B, heads, S, k], in descending order, equal ones by ascending
// key, NaN last; and the padded rows' columns of their keys, int32. Zeros and -1 where there are
// fewer, and for padding.
void ScatterTopKeys(const DenseProbabilities& dense, ResponseTensor& probabilities,
                    ResponseTensor& keys);

// To each probability times its value, where queries and keys are the same tokens: [B, heads, S of
// keys, S of queries, Dv]. values: [T, heads Dv]. Zeros where query or key is padding.
void ScatterWeightedValues(const DenseProbabilities& dense, MatrixView<const float> values,
                           ResponseTensor& target);

}  // namespace attendant::server
