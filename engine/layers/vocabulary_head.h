// VocabularyHead: the head of a masked language model, and the sparse vectors that SPLADE makes of
// its logits: Formal et al. 2021.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
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
  // Reads and packs the head of a model that has one. Errors of `loader`.
  static absl::StatusOr<VocabularyHead> Load(const ModelDescription& model, WeightLoader& loader);

  // Makes the vector of each sequence, see EncoderRun::WeighVocabulary. The logits of all tokens
  // never exist at once: they are made for kHeadRows tokens and kVocabularyColumns words at a
  // time, and go into the vectors at once.
  void Weigh(MatrixView<const float> hidden_states, absl::Span<const VocabularySequence> sequences,
             Workspace& workspace) const;

  // Calls `visit` for the norm, which it may change.
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) { visit(norm_); }

  // Reserves the memory that the products need.
  void ReserveScratch(Workspace& workspace) const;
  int64_t bytes() const;

 private:
  // Some rows of a sequence: those from `row` on of what the head works on.
  struct Segment {
    int64_t row;
    int64_t rows;
    float* weights;
  };

  VocabularyHead(const VocabularyHeadShape& shape, PackedLinear dense, NormParameters norm)
      : shape_(shape), dense_(std::move(dense)), norm_(std::move(norm)) {}

  // Weighs the vocabulary for the first `rows` rows of the workspace's head_inputs().
  void WeighRows(int64_t rows, absl::Span<const Segment> segments, Workspace& workspace) const;
  // Takes the logits of the words [first_word, first_word + logits.cols).
  void TakeLogits(MatrixView<const float> logits, int64_t first_word,
                  absl::Span<const Segment> segments, const ThreadTeam& team) const;
  // Adds what each word weighs for each row, [., at most a strip of words].
  void AddWeights(MatrixView<const float> logits, float* weights) const;
  // The weight that a positive logit becomes.
  double WeightOf(double logit) const;

  VocabularyHeadShape shape_;
  PackedLinear dense_;                // [W, E]
  NormParameters norm_;               // [W]
  std::vector<PackedLinear> output_;  // [V, W], cut into kVocabularyColumns outputs each
};

}  // namespace attendant
