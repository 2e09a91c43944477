// The public interface of the engine: Encoder is a loaded model, and EncoderRun computes batches
// with it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
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

// The token ids of one or more sequences, back to back and without padding. Each per-token span is
// empty or has one element per token. Does not own the spans.
struct TokenIds {
  absl::Span<const int32_t> words;  // each in [0, vocabulary)
  // Each in [0, positions); required if the model has a position table.
  absl::Span<const int32_t> positions;
  absl::Span<const int32_t> token_types;  // each in [0, token_types); all 0 if empty
  // Read only by models with EmbeddingShape::has_neighbours: two adjacent tokens are neighbours if
  // their ordinals are consecutive. If empty, all tokens form one sequence without gaps.
  absl::Span<const int64_t> ordinals = {};
  // Read only by models with EmbeddingShape::mask_id: sequence i has the tokens [cu_seqlens[i],
  // cu_seqlens[i + 1]). If empty, all tokens form one sequence.
  absl::Span<const int32_t> cu_seqlens = {};
};

class EncoderRun;

// A model with packed weights. Immutable and thread-safe, so all instances share it.
class Encoder {
 public:
  // Returns the memory that loading a model takes at its peak, in bytes: all packed weights plus
  // the largest tensor, which is held while it is packed. Reads no weights. Returns
  // INVALID_ARGUMENT if sizes overflow or the parts of the description do not fit together, and the
  // errors of CheckComputeMode (engine/kernels/gemm/compute_support.h) if the CPU does not support
  // `mode`.
  static absl::StatusOr<int64_t> PredictLoadBytes(const ModelDescription& description,
                                                  const ComputeMode& mode = {});

  // Reads and packs every weight, one at a time. Linear layers are packed for `mode`. Norms and the
  // linear layers of heads stay in float32, except in the MLM head, and embedding tables have the
  // type that the description states. Calls `progress` with the number of bytes done and the total
  // after each weight. The calling thread reads; `threads` threads pack. Returns the errors of
  // PredictLoadBytes and of `weights`.
  static absl::StatusOr<std::shared_ptr<const Encoder>> Load(
      const ModelDescription& description, WeightSource& weights,
      absl::FunctionRef<void(int64_t done, int64_t total)> progress, const ComputeMode& mode = {},
      int threads = 1);

  // Returns a model that shares all weights with `base`, except for the norms that `weights` has,
  // and the attention of layers that have fewer heads in `description`, whose weights it has too.
  // `base` may be destroyed first. Returns the errors of `weights`, and INVALID_ARGUMENT if
  // `description` differs from the base's in anything else, or if heads of the base are already
  // pruned and it differs at all.
  static absl::StatusOr<std::shared_ptr<const Encoder>> LoadOverlay(
      const Encoder& base, const ModelDescription& description, WeightSource& weights);

  // Returns the memory that a pruned overlay takes in addition to its norms, at its peak and in
  // bytes. Returns the errors of PredictLoadBytes.
  static absl::StatusOr<int64_t> PredictOverlayBytes(const ModelDescription& description,
                                                     const ComputeMode& mode = {});

  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder();

  const ModelDescription& description() const;
  const ComputeMode& mode() const;
  // The bytes of this model's weights, without those that it shares with a base.
  int64_t weight_bytes() const;
  // The distinct plans that loading chose for the products of the linear layers on this CPU, in the
  // order of first use. The plans of an overlay's base precede its own.
  const std::vector<ProductPlan>& product_plans() const;

  // Pools one sequence for `head`, kPooling or kClassifier; see Pool (pooling.h). `target` has
  // input_width(E) elements of the head and is set to zero if there are no rows.
  void Pool(HeadKind head, MatrixView<const float> hidden_states,
            absl::Span<const int32_t> positions, absl::Span<float> target) const;

  class Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Encoder(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// Computes batches with one model: owns the threads, and activations that are allocated once for
// the largest batch. Each instance has one run per model. Not thread-safe.
//
// To compute a batch, fill the rows [0, T) of input() with hidden states, or call Embed, or call
// ProjectFeatures and AddPrefixTokens. Then call Attend or Encode. The result is a view of this
// object's memory and is valid until the next call. Attend and Encode may overwrite input(), and
// the result may lie there. Rows of input() beyond T may hold anything. T = 0 is allowed; the
// result then has 0 rows.
class EncoderRun {
 public:
  // Returns an upper bound on bytes() for batches of up to `max_tokens` tokens. Returns
  // INVALID_ARGUMENT if PredictLoadBytes rejects the description or sizes overflow.
  static absl::StatusOr<int64_t> PredictBytes(const ModelDescription& description,
                                              int64_t max_tokens, int threads,
                                              const ComputeMode& mode = {});

  // `max_tokens`, the largest T of a batch, and `threads`, the size of the team, are at least 1.
  EncoderRun(std::shared_ptr<const Encoder> encoder, int64_t max_tokens, int threads);
  EncoderRun(EncoderRun&&) noexcept;
  ~EncoderRun();

  const Encoder& encoder() const;

  // The threads of this run. Callers may use them on results between two calls.
  const ThreadTeam& team() const;

  // Sets how the team splits products from now on. By default all threads share each product.
  void SetRowPlan(const RowPlan& plan);

  // Returns the plan for SetRowPlan that `policy` selects. kTimed runs layers of the model on this
  // run's team and measures them by the clock `now`, as TimeRowPlans (state/row_plan.h) describes;
  // this overwrites input(). With one thread, without layers, or if the layers require cross_kv, it
  // measures nothing and returns the default plan.
  RowPlan ChooseRowPlan(RowPolicy policy, absl::FunctionRef<absl::Time()> now);

  // The buffer for the hidden states of the next batch, [max_tokens, E].
  MatrixView<float> input();

  // The buffers for the source rows of cross-attention keys, [R, LayerShape::key_inputs()], and
  // values, [R, LayerShape::value_inputs()]; R is at least max_tokens. Both lie in the
  // same memory as input().
  MatrixView<float> key_input();
  MatrixView<float> value_input();

  // Projects source rows to the cross-attention keys and values of a layer. No norm is applied to
  // the rows. They must begin after the input rows that already hold the batch that will attend
  // to them or other source rows. The result is valid until
  // the same input rows are written or Encode is called. Returns INVALID_ARGUMENT if the layer does
  // not exist or does not support cross-attention (LayerShape::takes_cross_kv), and
  // RESOURCE_EXHAUSTED if `rows` are not within the inputs.
  absl::StatusOr<CrossKv> ProjectCrossKv(int64_t layer, const CrossKvRange& rows);

  // Writes the embeddings of `ids`, after the norm and the projection if the model has them, to the
  // rows [first_row, first_row + ids.words.size()) of input(). The model must have embeddings, and
  // the caller must have checked that the ids are within their tables.
  void Embed(const TokenIds& ids, int64_t first_row);

  // FeatureRows returns a buffer for `rows` features of the model's input width. Once the caller
  // has filled it, ProjectFeatures projects them to the rows [first_row, first_row + rows) of
  // input(). The model must have a patch embedding.
  MatrixView<float> FeatureRows(int64_t first_row, int64_t rows);
  void ProjectFeatures(int64_t first_row, int64_t rows);

  // Completes the input of layer 0 for one sequence, whose projected features are in the rows of
  // input() from first_row + prefix_tokens() on: writes the prefix tokens before them, adds
  // position embeddings and applies the norm. `positions` has one position per feature. If the
  // model has a position table, the caller must have checked that each is in [0, features()). The
  // model must have a patch embedding.
  void AddPrefixTokens(absl::Span<const int32_t> positions, int64_t first_row);

  // Computes the attention of one layer on x = input(). The result is [T, C of the layer] for
  // kContext and [T, E] otherwise.
  //   kContext    softmax(Q K^T scale + bias) V, the heads side by side
  //   kProjected  context Wo^T + bo
  //   kBlock      post-norm: norm(x + projected); pre-norm: x + projected; no norms: projected or,
  //               without an output projection, the context [T, C]
  // In a pre-norm layer the attention reads norm(x) in all three stages, as in the layer itself. If
  // the batch has cross_kv, x makes only the queries. If it has selected rows, the other rows of
  // the result are undefined. Calls only ProbabilitiesTarget and OnValues of `observer`. Returns
  // INVALID_ARGUMENT if the layer does not exist, if `stage` is kProjected and the layer has no
  // output projection, if the batch has cross_kv that the layer does not support or lacks cross_kv
  // that it requires, or if the batch is not a valid packed batch. Returns RESOURCE_EXHAUSTED if
  // T > max_tokens.
  absl::StatusOr<MatrixView<const float>> Attend(int64_t layer, AttendStage stage,
                                                 const PackedBatch& batch, RunObserver& observer);

  // Computes the layers [first_layer, first_layer + layers) on input(), and then the final norm if
  // the model has one and its last layer is among them. The observer receives the last layer's
  // output before that norm. The result is [T, E]. If the batch has selected rows, the other rows
  // of the result are undefined. A model whose layers change the width (no norms, and C != E) can
  // run only one layer at a time, with a result of [T, C]. A model without layers runs 0 layers and
  // returns input(). Returns CANCELLED if the observer stopped the run, INVALID_ARGUMENT if the
  // layers are not within the model, the batch has cross_kv or is invalid, and RESOURCE_EXHAUSTED
  // if T > max_tokens.
  absl::StatusOr<MatrixView<const float>> Encode(int64_t first_layer, int64_t layers,
                                                 const PackedBatch& batch, RunObserver& observer);

  // Applies a dense head of the model, or kNone, to `rows` vectors. `fill` writes an input vector;
  // `take` receives the output vector and may change it. Each is called once per row, on any thread
  // of the team, and may read a result of this run, which stays valid.
  void ApplyHead(HeadKind head, int64_t rows, HeadRowFunction fill, HeadRowFunction take);

  // Computes one sparse vector over the vocabulary for each sequence with the model's lexical or
  // MLM head, of which it must have one. Sequences without rows get zeros. `hidden_states`, [., E],
  // may be a result of this run, which stays valid. A NaN stays in its column.
  void WeighVocabulary(MatrixView<const float> hidden_states,
                       absl::Span<const VocabularySequence> sequences);

  // The number of fully masked rows, counted per query and head, in all layers of the last run; see
  // Attention.
  int64_t fully_masked_rows() const;

  // The bytes that this run holds. Includes the position tables, although runs of the same encoder
  // and size share them.
  int64_t bytes() const;

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
