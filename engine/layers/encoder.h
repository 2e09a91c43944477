// The engine's front door: a loaded model, and what an instance needs to run it.
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

enum class AttendStage { kContext, kProjected, kBlock };

// Token ids of kept tokens of one or more sequences, back to back. All have the same size, or are
// empty.
struct TokenIds {
  absl::Span<const int32_t> words;  // each in [0, vocabulary)
  absl::Span<const int32_t>
      positions;  // each in [0, positions); required if the model has a position table
  absl::Span<const int32_t> token_types;  // each in [0, token_types); empty: zeros
  // Of models whose embeddings look at neighbours: a token's neighbour behind it, if it has one, is
  // the next one and has the next number. Empty: all are neighbours of the next, in one sequence.
  absl::Span<const int64_t> places = {};
};

class EncoderRun;

// A model with its weights packed: immutable, thread-safe, shared by all instances.
class Encoder {
 public:
  // Bytes that the packed weights of such a model will take, and the largest tensor on top while
  // loading: known before anything is read (W14). INVALID_ARGUMENT if the sizes overflow or the
  // parts do not fit together. Errors of CheckComputeMode (engine/kernels/compute_support.h) if the
  // CPU cannot compute so.
  static absl::StatusOr<int64_t> PredictLoadBytes(const ModelDescription& description,
                                                  const ComputeMode& mode = {});

  // Reads and packs every weight, one at a time, for the linear layers to compute in `mode`;
  // embedding tables, norms and the dense layer of the pooling stay float32. `progress(done,
  // total)` is called after each, in bytes. Refuses what PredictLoadBytes refuses.
  static absl::StatusOr<std::shared_ptr<const Encoder>> Load(
      const ModelDescription& description, WeightSource& weights,
      absl::FunctionRef<void(int64_t done, int64_t total)> progress, const ComputeMode& mode = {});

  // The model `base` with those norms that `norms` has; all else is shared with it. Errors of
  // reading.
  static absl::StatusOr<std::shared_ptr<const Encoder>> LoadOverlay(const Encoder& base,
                                                                    WeightSource& norms);

  // The same without some heads. `description` is the base's without them; `weights` has the norms,
  // and the attention of the layers that lost heads. Everything else is shared. INVALID_ARGUMENT:
  // the base has been pruned otherwise, or is another model.
  static absl::StatusOr<std::shared_ptr<const Encoder>> LoadOverlay(
      const Encoder& base, const ModelDescription& description, WeightSource& weights);

  // What such an overlay takes beside its norms, at most, and while it is loaded. INVALID_ARGUMENT
  // as PredictLoadBytes.
  static absl::StatusOr<int64_t> PredictOverlayBytes(const ModelDescription& description,
                                                     const ComputeMode& mode = {});

  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder();

  const ModelDescription& description() const;
  const ComputeMode& mode() const;
  // Of what it does not share with another one.
  int64_t weight_bytes() const;
  // How the linear layers are multiplied, as loading found it best on this CPU: each plan once, in
  // the order of first use. An overlay's are those of its base, then of layers of its own.
  const std::vector<ProductPlan>& product_plans() const;

  class Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Encoder(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// Activations of one instance for one model, allocated once for the largest batch. Not thread-safe.
//
// Use: fill rows [0, T) of input() (hidden states), or call Embed; then Attend or Encode; the
// result is valid until the next call. A run may overwrite input(), and the result may be there.
// Rows beyond T may hold anything: the run zeroes the fewer than kRowTile rows that it needs. T = 0
// is legal and gives a result of 0 rows.
class EncoderRun {
 public:
  // Bytes that a run for `max_tokens` tokens, none of a sequence longer than that, will hold at
  // most.
  static absl::StatusOr<int64_t> PredictBytes(const ModelDescription& description,
                                              int64_t max_tokens, int threads,
                                              const ComputeMode& mode = {});

  // `max_tokens` >= 1 bounds T of every batch.
  EncoderRun(std::shared_ptr<const Encoder> encoder, int64_t max_tokens, int threads);
  EncoderRun(EncoderRun&&) noexcept;
  ~EncoderRun();

  const Encoder& encoder() const;

  // How the team divides the products, from here on; at first together.
  void SetRowPlan(const RowPlan& plan);

  // What the policy says, for SetRowPlan. kTimed runs layers of the model on this run's team, by
  // the clock `now`, see TimeRowPlans; it overwrites input(). It times nothing, and keeps to the
  // team, with one thread and for layers that need cross_kv.
  RowPlan ChooseRowPlan(RowPolicy policy, absl::FunctionRef<absl::Time()> now);

  // [max_tokens, E]; where the hidden states of the next run go.
  MatrixView<float> input();

  // The rows that cross_kv is made of, [max_tokens and up to 2 kRowTile more, Ek and Ev]: in the
  // same buffer.
  MatrixView<float> key_input();
  MatrixView<float> value_input();

  // Keys and values that a layer makes of these rows as they are, without a norm before. The
  // rows begin PaddedRows behind whatever else the inputs hold: a batch that will attend to them,
  // other such rows. Valid until the same rows of the inputs are written, or Encode is called.
  // INVALID_ARGUMENT: no such layer, or one that takes none (LayerShape::takes_cross_kv).
  // RESOURCE_EXHAUSTED: rows beyond the inputs.
  absl::StatusOr<CrossKv> ProjectCrossKv(int64_t layer, const CrossKvRows& rows);

  // Embeds ids into rows [first_row, first_row + ids.words.size()) of input(): word + position +
  // token type, norm, projection. The ids must be inside their tables (the caller checks) and the
  // model must have embeddings.
  void Embed(const TokenIds& ids, int64_t first_row);

  // Where `rows` features go, each as wide as the model takes them, that ProjectFeatures then
  // brings into rows [first_row, first_row + rows) of input(); the model must have a front.
  MatrixView<float> FeatureRows(int64_t first_row, int64_t rows);
  void ProjectFeatures(int64_t first_row, int64_t rows);

  // Makes what enters layer 0 of one sequence of features, which are in rows [first_row + own_rows,
  // …) of input(): the model's own rows before them, the positions onto them, the norm. `positions`
  // of the features, each in [0, features()) where the model has such a table (the caller checks);
  // the model must have a front.
  void AddFront(absl::Span<const int32_t> positions, int64_t first_row);

  // One layer's attention of input(). Result: [T, C of the layer] for kContext, else [T, E].
  //   kContext    softmax(Q K^T scale + bias) V, the heads side by side
  //   kProjected  context Wo^T + bo
  //   kBlock      post-norm: norm(x + projected); pre-norm: x + projected; none: projected, or the
  //   context of a layer
  //               without output projection: [T, C]
  // In a pre-norm layer all three take norm(x) for what enters the attention, as the layer itself
  // does. Only the batch's wanted rows are sure to hold anything. If the batch has cross_kv, the
  // input makes the queries alone. Of `observer` only ProbabilitiesTarget and OnValues are called.
  // INVALID_ARGUMENT: no such layer, kProjected without an output projection, cross_kv where none
  // fits or none where the layer needs one, or cu_seqlens, bias or cross_kv that are no packed
  // batch. RESOURCE_EXHAUSTED: T > max_tokens.
  absl::StatusOr<MatrixView<const float>> Attend(int64_t layer, AttendStage stage,
                                                 const PackedBatch& batch, RunObserver& observer);

  // Layers [first_layer, first_layer + layers) of input(), with the exit norm if the last layer is
  // among them and the model has one (AfterLayer sees the last layer's output before that norm).
  // Result: [T, E], of which only the batch's wanted rows are sure to hold anything. CANCELLED if
  // the observer wanted no more; INVALID_ARGUMENT for a span outside the model, and else as Attend.
  // A model whose layer keeps E fits; one whose context is its output (norm_placement none, C != E)
  // can only run one layer: [T, C].
  absl::StatusOr<MatrixView<const float>> Encode(int64_t first_layer, int64_t layers,
                                                 const PackedBatch& batch, RunObserver& observer);

  // Fully masked query rows of the last run, times heads (see Attention).
  int64_t fully_masked_rows() const;

  // What this run holds.
  int64_t bytes() const;

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant
