// The engine's public interface: Encoder, a loaded model, and EncoderRun, which computes batches
// with it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/batch.h"
#include "engine/layers/state/row_plan.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The ids of the kept tokens of one or more sequences, back to back. The spans with one element for
// each token have the same size or are empty. Does not own them.
struct TokenIds {
  absl::Span<const int32_t> words;  // each in [0, vocabulary)
  // Each in [0, positions); required if the model has a position table.
  absl::Span<const int32_t> positions;
  absl::Span<const int32_t> token_types;  // each in [0, token_types); empty: zeros
  // Only for models whose embeddings look at neighbours: numbers of the tokens, such that a token
  // and the next one are neighbours if the next one has the next number. Empty: each token is a
  // neighbour of the next, in one sequence.
  absl::Span<const int64_t> ordinals = {};
  // Only for models that leave out masks (EmbeddingShape::mask_id): sequence i has the ids
  // [cu_seqlens[i], cu_seqlens[i + 1]). Empty: all of them are one sequence.
  absl::Span<const int32_t> cu_seqlens = {};
};

class EncoderRun;

// A model with packed weights. Immutable and thread-safe; all instances share it.
class Encoder {
 public:
  // Returns, before anything is read, the bytes that the packed weights of a model will take and,
  // on top of these, the largest tensor, which loading holds for a while. INVALID_ARGUMENT if the
  // sizes overflow or the parts do not fit together. Errors of CheckComputeMode
  // (engine/kernels/gemm/compute_support.h) if the CPU cannot compute in `mode`.
  static absl::StatusOr<int64_t> PredictLoadBytes(const ModelDescription& description,
                                                  const ComputeMode& mode = {});

  // Reads and packs every weight, one at a time, for linear layers that compute in `mode`;
  // embedding tables, norms and the linear layers of heads stay float32, but for those of the
  // vocabulary head. `progress(done,
  // total)`, in bytes, is called after each weight. The calling thread reads, and `threads` threads
  // pack. Errors of PredictLoadBytes and of reading.
  static absl::StatusOr<std::shared_ptr<const Encoder>> Load(
      const ModelDescription& description, WeightSource& weights,
      absl::FunctionRef<void(int64_t done, int64_t total)> progress, const ComputeMode& mode = {},
      int threads = 1);

  // Returns the model `base` with the norms that `norms` has in place of its own, and shares
  // everything else with it. Errors of reading.
  static absl::StatusOr<std::shared_ptr<const Encoder>> LoadOverlay(const Encoder& base,
                                                                    WeightSource& norms);

  // Returns such a model with some heads pruned too. `description` is the base's without these
  // heads; `weights` has the norms, and the attention of the layers that lose heads. Everything
  // else is shared. INVALID_ARGUMENT: the base has other heads pruned, or is another model.
  static absl::StatusOr<std::shared_ptr<const Encoder>> LoadOverlay(
      const Encoder& base, const ModelDescription& description, WeightSource& weights);

  // Returns the largest number of bytes that a model of LoadOverlay takes in addition to its norms,
  // also while it is loaded. Errors of PredictLoadBytes.
  static absl::StatusOr<int64_t> PredictOverlayBytes(const ModelDescription& description,
                                                     const ComputeMode& mode = {});

  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder();

  const ModelDescription& description() const;
  const ComputeMode& mode() const;
  // Bytes of the weights that it does not share with a base.
  int64_t weight_bytes() const;
  // The plans that loading found best for the products of the linear layers on this CPU, each once
  // and in the order of first use. An overlay has those of its base, then those of its own layers.
  const std::vector<ProductPlan>& product_plans() const;

  // Pools one sequence for the head, kPooling or kClassifier: see Pool (pooling.h).
  // target: [input_width(E)] of the head, zeros without rows.
  void Pool(HeadKind head, MatrixView<const float> hidden_states,
            absl::Span<const int32_t> positions, absl::Span<float> target) const;

  class Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Encoder(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// The activations of one instance for one model, allocated once for the largest batch, and the
// threads that compute them. Not thread-safe.
//
// To compute a batch, fill the rows [0, T) of input() with hidden states, or call Embed or
// ProjectFeatures and AddPrefixTokens; then call Attend or Encode. The result is a view of the
// run's memory, valid until the next call. A run may overwrite input(), and the result may lie
// there. Rows beyond T may hold anything: the run zeroes those that it needs, fewer than kRowTile.
// T = 0 is allowed and gives a result of 0 rows.
class EncoderRun {
 public:
  // Returns the largest number of bytes that a run for batches of up to `max_tokens` tokens will
  // hold. INVALID_ARGUMENT: a description that PredictLoadBytes refuses, or sizes that overflow.
  static absl::StatusOr<int64_t> PredictBytes(const ModelDescription& description,
                                              int64_t max_tokens, int threads,
                                              const ComputeMode& mode = {});

  // `max_tokens` >= 1 bounds T of every batch, and `threads` >= 1 is the size of the team.
  EncoderRun(std::shared_ptr<const Encoder> encoder, int64_t max_tokens, int threads);
  EncoderRun(EncoderRun&&) noexcept;
  ~EncoderRun();

  const Encoder& encoder() const;

  // The threads of this run, for work on its results between two calls.
  const ThreadTeam& team() const;

  // Sets how the team divides the products from now on. At first all threads share each product.
  void SetRowPlan(const RowPlan& plan);

  // Returns the plan for SetRowPlan that the policy asks for. kTimed runs layers of the model on
  // this run's team and times them by the clock `now`, see TimeRowPlans (state/row_plan.h); this
  // overwrites input(). With one thread, or for layers that need cross_kv, or without layers, it
  // times nothing and lets all threads share each product.
  RowPlan ChooseRowPlan(RowPolicy policy, absl::FunctionRef<absl::Time()> now);

  // The room for the hidden states of the next run, [max_tokens, E].
  MatrixView<float> input();

  // The room for the rows that keys and values of cross-attention are made of: [max_tokens and up
  // to 2 kRowTile more, LayerShape::key_inputs()] and [as many, value_inputs()]. It is in the same
  // buffer as input().
  MatrixView<float> key_input();
  MatrixView<float> value_input();

  // Returns the keys and values that a layer makes of these rows as they are, without a norm
  // before. The rows must begin at or after PaddedRows(n), where n counts the rows of the inputs
  // that are already in use by the batch that will attend to them or by other such rows. The result
  // is valid until the same rows of the inputs are written, or Encode is called. INVALID_ARGUMENT:
  // there is no such layer, or it cannot attend to other rows (LayerShape::takes_cross_kv).
  // RESOURCE_EXHAUSTED: rows beyond the inputs.
  absl::StatusOr<CrossKv> ProjectCrossKv(int64_t layer, const CrossKvRange& rows);

  // Writes the embeddings of `ids`, with norm and projection as the model has them, to the rows
  // [first_row, first_row + ids.words.size()) of input(). The caller must have checked that the ids
  // are inside their tables and that the model has embeddings.
  void Embed(const TokenIds& ids, int64_t first_row);

  // Returns room for `rows` features, of the width that the model takes. Once they are written,
  // ProjectFeatures projects them to the rows [first_row, first_row + rows) of input(). The model
  // must have a patch embedding.
  MatrixView<float> FeatureRows(int64_t first_row, int64_t rows);
  void ProjectFeatures(int64_t first_row, int64_t rows);

  // Makes the input of layer 0 for one sequence, whose projected features are in the rows
  // [first_row + prefix_tokens(), …) of input(): puts the prefix tokens before them, adds
  // positions, and applies the norm. `positions` has one position for each feature. If the model
  // has a position table, the caller must have checked that each is in [0, features()). The model
  // must have a patch embedding.
  void AddPrefixTokens(absl::Span<const int32_t> positions, int64_t first_row);

  // Computes the attention of one layer on x = input(). The result is [T, C of the layer] for
  // kContext, else [T, E].
  //   kContext    softmax(Q K^T scale + bias) V, the heads side by side
  //   kProjected  context Wo^T + bo
  //   kBlock      post-norm: norm(x + projected); pre-norm: x + projected; no norms: projected, or,
  //               without an output projection, the context [T, C]
  // In a pre-norm layer the attention takes norm(x) at all three stages, as in the layer itself. If
  // the batch has wanted rows, the other rows of the result may hold anything. If it has cross_kv,
  // x makes the queries alone. Of `observer` only ProbabilitiesTarget and OnValues are called.
  // INVALID_ARGUMENT: there is no such layer, kProjected without an output projection, cross_kv
  // where the layer cannot take it or none where the layer needs it, or a batch that is no packed
  // batch. RESOURCE_EXHAUSTED: T > max_tokens.
  absl::StatusOr<MatrixView<const float>> Attend(int64_t layer, AttendStage stage,
                                                 const PackedBatch& batch, RunObserver& observer);

  // Computes the layers [first_layer, first_layer + layers) on input(), and the exit norm if the
  // model has one and its last layer is among them; AfterLayer sees the last layer's output before
  // that norm. The result is [T, E]. If the batch has wanted rows, the other rows of the result may
  // hold anything. A model whose layers do not give the width E that they take (no norms, and C !=
  // E) can run one layer only, with a result of [T, C]. A model without layers takes a span of none
  // and gives input(). CANCELLED: the observer wanted no more.
  // INVALID_ARGUMENT: a span outside the model, cross_kv, and the errors of Attend.
  // RESOURCE_EXHAUSTED: T > max_tokens.
  absl::StatusOr<MatrixView<const float>> Encode(int64_t first_layer, int64_t layers,
                                                 const PackedBatch& batch, RunObserver& observer);

  // Applies a head of linear layers, which the model must have, or none, to `rows` vectors. `fill`
  // writes one of them, and `take` takes what the head makes of it, which it may change. Both are
  // called once for each row, on any thread of the team, and may read a result of this run, which
  // stays valid.
  void ApplyHead(HeadKind head, int64_t rows, HeadRowFunction fill, HeadRowFunction take);

  // Makes one vector over the vocabulary for each sequence by the model's lexical or vocabulary
  // head, of which it must have one: zeros for words that weigh nothing, and for sequences without
  // rows. The hidden states, [., E], may be a result of this run, which stays valid. NaN stays in
  // its column.
  void WeighVocabulary(MatrixView<const float> hidden_states,
                       absl::Span<const VocabularySequence> sequences);

  // The number of fully masked (query, head) rows of the last run, in all its layers; see
  // Attention.
  int64_t fully_masked_rows() const;

  // The bytes that this run holds. Tables of positions, which runs of one encoder and size share,
  // count for each.
  int64_t bytes() const;

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
