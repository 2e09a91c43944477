// VocabularyHead: the MLM head, and the sparse vectors that SPLADE computes from its logits (Formal
// et al. 2021).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/layers/state/workspace.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe. E is the hidden size, W the width of the head, V the vocabulary.
class VocabularyHead {
 public:
  // Reads and packs the MLM head, which `model` must have.
  VocabularyHead(const ModelDescription& model, WeightLoader& loader);

  // Computes the vector of each sequence; see EncoderRun::WeighVocabulary. To bound memory, logits
  // are computed for kHeadRows tokens and kVocabularyColumns token ids at a time and folded into
  // the vectors.
  void Weigh(MatrixView<const float> hidden_states, absl::Span<const VocabularySequence> sequences,
             Workspace& workspace) const;

 private:
  // Rows of one sequence among the rows that the head computes at a time.
  struct Segment {
    int64_t row;  // the first one
    int64_t rows;
    float* weights;  // [V], of the sequence
  };

  // Adds the weights of the first `rows` rows of the workspace's head_inputs().
  void WeighRows(int64_t rows, absl::Span<const Segment> segments, Workspace& workspace) const;
  // Adds the weights of the token ids [first_word, first_word + logits.cols).
  void TakeLogits(MatrixView<const float> logits, int64_t first_word,
                  absl::Span<const Segment> segments, const ThreadTeam& team) const;
  // Adds the weights that a strip of token ids has in each row of `logits`.
  void AddWeights(MatrixView<const float> logits, float* weights) const;
  // Returns the weight of a positive logit.
  double WeightOf(double logit) const;

  VocabularyHeadShape shape_;
  PackedLinear dense_;                // [W, E]
  int norm_;                          // [W]
  std::vector<PackedLinear> output_;  // [V, W], split into layers of kVocabularyColumns outputs
};

}  // namespace attendant
