#include "engine/layers/state/run_state.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "engine/kernels/attention/relative_bias.h"
#include "engine/kernels/gemm/operand.h"
#include "engine/model/model_facts.h"

namespace attendant {
namespace {

// Bounds on the kernels' scratch memory, which does not grow with the batch. Per worker, products
// hold a few hundred rows of x and y, and the attention holds a block of keys, values and scores.
constexpr int64_t kScratchRows = 512;
constexpr int64_t kScratchFloor = int64_t{1} << 20;

// Returns the rows of the learned table that disentangled attention scores tokens against, or 0.
int64_t RelativeRows(const LayerShape& layer) {
  const RelativePositionShape& relative = layer.relative_positions;
  return relative.kind == RelativePositions::kDisentangled ? relative.position_rows() : 0;
}

CheckedSize ScratchBytes(const LayerShape& layer, int threads) {
  const CheckedSize widths =
      CheckedSize(layer.attention.heads) * (CheckedSize(2) * layer.attention.key_width) +
      CheckedSize(layer.attention.heads) * layer.attention.value_width +
      layer.attention.value_width + layer.attention.linformer.keys + layer.widest_input() +
      layer.projected_width() + layer.feed_forward.width +
      CheckedSize(layer.extras.convolution.taps) * layer.hidden_size;
  return CheckedSize(threads) *
         (CheckedSize(kScratchFloor) + CheckedSize(kScratchRows) *
                                           (widths + CheckedSize(2) * RelativeRows(layer)) *
                                           CheckedSize(sizeof(float)));
}

std::vector<float> RotaryThetas(const ModelDescription& model) {
  std::vector<float> thetas;
  if (model.layer.relative_positions.kind != RelativePositions::kRotary) return thetas;
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    thetas.push_back(model.layer_shape(i).relative_positions.rotary_theta);
  }
  std::sort(thetas.begin(), thetas.end());
  thetas.erase(std::unique(thetas.begin(), thetas.end()), thetas.end());
  return thetas;
}

CheckedSize DistanceElements(const LayerShape& layer, int64_t max_tokens) {
  if (RelativeRows(layer) > 0) return CheckedSize(2) * max_tokens;
  if (!layer.relative_positions.adds_to_scores()) return 0;
  return CheckedSize(layer.attention.heads) * (CheckedSize(2) * max_tokens);
}

CheckedSize RotaryElements(const ModelDescription& model, int64_t max_tokens) {
  return CheckedSize(static_cast<int64_t>(RotaryThetas(model).size())) *
         model.layer.relative_positions.rotary_width * max_tokens;
}

absl::Status CheckPositions(const PackedBatch& batch, int64_t max_tokens) {
  if (batch.positions.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(batch.positions.size()) != batch.tokens()) {
    return absl::InvalidArgumentError(absl::StrCat("positions: expected one for each of ",
                                                   batch.tokens(), " tokens, got ",
                                                   batch.positions.size()));
  }
  for (const int32_t position : batch.positions) {
    if (position >= 0 && position < max_tokens) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("positions: expected 0 to ", max_tokens - 1, ", got ", position));
  }
  return absl::OkStatus();
}

// Returns the size of the largest input of a linear layer in the representation of its compute
// type, with a scale for each row of int8, plus that of the feed-forward block's second product,
// whose input is held at the same time.
CheckedSize OperandBytes(const ModelDescription& model, int64_t capacity, const ComputeMode& mode) {
  if (mode.type == ComputeType::kF32) return 0;
  const LayerShape& layer = model.layer;
  const CheckedSize rows = CheckedSize(capacity).RoundedUpTo(kRowTile);
  const CheckedSize chunk = std::min(rows.value(), kFeedForwardRows);
  CheckedSize largest = rows * CheckedSize(std::max(layer.widest_input(), layer.inner_width()));
  if (layer.attention.has_output_projection) {
    largest =
        Larger(largest, rows * CheckedSize(layer.attention.heads) * layer.attention.value_width);
  }
  largest = Larger(largest, chunk * CheckedSize(layer.extras.convolution.taps) *
                                (layer.hidden_size / layer.extras.convolution.groups));
  if (model.embeddings && model.embeddings->projected(layer.hidden_size)) {
    largest = Larger(largest, rows * CheckedSize(model.embeddings->projected_from()));
  }
  const CheckedSize inner = chunk * CheckedSize(layer.feed_forward.width);
  CheckedSize scales = 0;
  if (mode.type == ComputeType::kInt8) {
    scales = layer.feed_forward.width > 0 ? rows + chunk : rows;
  }
  return (largest + inner) * OperandWidth(mode) + scales * CheckedSize(sizeof(float));
}

absl::Status CheckCrossKv(const PackedBatch& batch, int64_t max_tokens) {
  if (batch.cross_kv.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(batch.cross_kv.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("memory: expected one for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.cross_kv.size()));
  }
  for (const CrossKv& cross_kv : batch.cross_kv) {
    const int64_t rows = cross_kv.keys.rows;
    const int64_t positions = static_cast<int64_t>(cross_kv.positions.size());
    if (cross_kv.values.rows != rows || (positions != rows && positions != 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("memory: expected as many values, and positions if any, as the ", rows,
                       " keys, got ", cross_kv.values.rows, " and ", positions));
    }
    if (rows > max_tokens) {
      return absl::ResourceExhaustedError(
          absl::StrCat("memory: expected at most ", max_tokens, " rows, got ", rows));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(const PackedBatch& batch, int64_t max_tokens) {
  const absl::Span<const int32_t> bounds = batch.cu_seqlens;
  if (bounds.empty() || bounds.front() != 0 || !std::is_sorted(bounds.begin(), bounds.end())) {
    return absl::InvalidArgumentError("cu_seqlens: expected to ascend from 0");
  }
  if (!batch.bias.empty() && static_cast<int64_t>(batch.bias.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("bias: expected one for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.bias.size()));
  }
  if (!batch.head_gates.empty() &&
      static_cast<int64_t>(batch.head_gates.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("head_gates: expected some for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.head_gates.size()));
  }
  if (!batch.states.empty() && static_cast<int64_t>(batch.states.size()) != batch.sequences()) {
    return absl::InvalidArgumentError(absl::StrCat("states: expected one for each of ",
                                                   batch.sequences(), " sequences, got ",
                                                   batch.states.size()));
  }
  const absl::Span<const int32_t> rows = batch.wanted_rows;
  if (!rows.empty() &&
      (rows.front() < 0 || rows.back() >= batch.tokens() ||
       std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) != rows.end())) {
    return absl::InvalidArgumentError(absl::StrCat("wanted_rows: expected ascending rows of the ",
                                                   batch.tokens(), " of the batch"));
  }
  if (batch.tokens() > max_tokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("batch: expected at most ", max_tokens, " tokens, got ", batch.tokens()));
  }
  absl::Status status = CheckPositions(batch, max_tokens);
  status.Update(CheckCrossKv(batch, max_tokens));
  return status;
}

// Checks that every token is among the first `most` positions, counted from the first token of its
// sequence; 0: any number.
absl::Status CheckMixedPositions(const PackedBatch& batch, int64_t most) {
  for (int64_t i = 0; most > 0 && i < batch.sequences(); ++i) {
    const int64_t begin = batch.cu_seqlens[i], end = batch.cu_seqlens[i + 1];
    if (begin == end) continue;
    const int64_t reach = batch.positions.empty()
                              ? end - begin
                              : batch.positions[end - 1] - batch.positions[begin] + 1;
    if (reach <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("batch: expected sequences of at most ", most, " positions, got ", reach));
  }
  return absl::OkStatus();
}

}  // namespace

void ZeroRows(MatrixView<float> rows) {
  for (int64_t r = 0; r < rows.rows; ++r) std::fill_n(rows.row(r), rows.cols, 0.0f);
}

AttentionShape AttentionShapeOf(const LayerShape& layer, const ComputeMode& mode) {
  return {.heads = layer.attention.heads,
          .key_width = layer.attention.key_width,
          .value_width = layer.attention.value_width,
          .scale = layer.attention.score_scale,
          .window = layer.attention.window,
          .pattern = layer.attention.pattern,
          .relative_rows = RelativeRows(layer),
          .kind = layer.attention.kind,
          .mixed_keys = layer.attention.linformer.keys,
          .head_numbers = layer.attention.head_numbers,
          .mode = mode};
}

RunState::RunState(const ModelDescription& model, int64_t capacity, int threads,
                   const ComputeMode& compute_mode)
    : max_tokens(capacity),
      mode(compute_mode),
      team(threads),
      activations(model, capacity),
      gemm(threads),
      attention(threads, AttentionShapeOf(model.layer, mode), capacity),
      scratch_bytes(ScratchBytes(model.layer, threads).value()),
      distance_bias(model.layer.relative_positions.adds_to_scores()
                        ? DistanceElements(model.layer, capacity).value()
                        : 0),
      distance_rows(RelativeRows(model.layer) > 0 ? DistanceColumns(capacity) : 0),
      scores_pairs_(ScoresPairs(model.layer.attention.kind)),
      why_no_states_(WhyNotInChunks(model)),
      layer_state_size_(LayerStateSize(model.layer)),
      mixed_positions_(model.layer.attention.linformer.positions),
      heads_(model.layer.attention.heads) {
  if (distance_bias.size() > 0) distances_ = AsAttentionBias(distance_table());
  const RelativePositionShape& relative = model.layer.relative_positions;
  for (const float theta : RotaryThetas(model)) {
    rotary_tables.emplace_back(capacity, relative.rotary_width, theta, relative.rotary_stretch);
  }
}

CheckedSize RunState::Bytes(const ModelDescription& model, int64_t capacity, int threads,
                            const ComputeMode& mode) {
  return Activations::Bytes(model, capacity) + OperandBytes(model, capacity, mode) +
         ScratchBytes(model.layer, threads) +
         (DistanceElements(model.layer, capacity) + RotaryElements(model, capacity)) *
             CheckedSize(sizeof(float));
}

int64_t RunState::table_bytes() const {
  int64_t sum = distance_bias.bytes() +
                static_cast<int64_t>(distance_rows.size() * sizeof(distance_rows.front()));
  for (const RotaryTable& table : rotary_tables) sum += table.bytes();
  return sum;
}

const RotaryTable& RunState::rotary_table(float theta) const {
  return *std::find_if(rotary_tables.begin(), rotary_tables.end(),
                       [&](const RotaryTable& table) { return table.theta() == theta; });
}

// Positions count from the first kept token, so that padding before it does not change a bit.
void RunState::TakePositions(const PackedBatch& batch) {
  positions.clear();
  for (int64_t i = 0; i < batch.sequences(); ++i) {
    const int32_t begin = batch.cu_seqlens[i];
    for (int32_t t = begin; t < batch.cu_seqlens[i + 1]; ++t) {
      positions.push_back(batch.positions.empty() ? t - begin
                                                  : batch.positions[t] - batch.positions[begin]);
    }
  }
}

const AttentionBias* RunState::distances() const { return distances_ ? &*distances_ : nullptr; }

RelativeScores RunState::WithDistanceRows(RelativeScores projections) const {
  projections.row_of = distance_rows.data();
  projections.middle = max_tokens - 1;
  return projections;
}

MatrixView<float> RunState::distance_table() {
  return {distance_bias.data(), heads_, DistanceColumns(max_tokens), 2 * max_tokens};
}

absl::Status RunState::Begin(const PackedBatch& batch) {
  if (absl::Status status = CheckBatch(batch, max_tokens); !status.ok()) return status;
  if (!scores_pairs_ && !batch.bias.empty()) {
    return absl::InvalidArgumentError(
        "bias: expected none, because the attention has no scores of pairs to add it to");
  }
  if (!why_no_states_.empty() && !batch.states.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("states: expected none, because of this model, ", why_no_states_));
  }
  if (absl::Status status = CheckMixedPositions(batch, mixed_positions_); !status.ok())
    return status;
  tokens = batch.tokens();
  has_cross_kv = !batch.cross_kv.empty();
  fully_masked_rows = 0;
  if (!rotary_tables.empty()) TakePositions(batch);
  const int64_t tail = PaddedRows(tokens) - tokens;
  ZeroRows(activations.hidden().Rows(tokens, tail));
  ZeroRows(activations.branch().Rows(tokens, tail));
  return absl::OkStatus();
}

AttentionSequence RunState::SequenceOf(const PackedBatch& batch, int64_t i) const {
  const int64_t begin = batch.cu_seqlens[i], length = batch.cu_seqlens[i + 1] - begin;
  AttentionSequence sequence = {.row_begin = begin, .length = length};
  if (!batch.bias.empty()) sequence.bias = batch.bias[i];
  if (!batch.positions.empty()) sequence.positions = batch.positions.subspan(begin, length);
  if (!batch.cross_kv.empty()) sequence.cross_kv = &batch.cross_kv[i];
  if (!batch.head_gates.empty() && batch.head_gates[i].data != nullptr) {
    const HeadGates& gates = batch.head_gates[i];
    sequence.head_gates = gates.data + span_index_ * gates.layer_stride;
  }
  if (!batch.states.empty()) {
    const LinearState& state = batch.states[i];
    const int64_t first = span_index_ * layer_state_size_;
    if (state.before != nullptr) sequence.state.before = state.before + first;
    if (state.after != nullptr) sequence.state.after = state.after + first;
  }
  return sequence;
}

void RunState::BeginLayer(int64_t next, int64_t first_layer, const PackedBatch& batch,
                          RunObserver& watcher) {
  layer = next;
  observer = &watcher;
  span_index_ = layer - first_layer;
  wanted_rows = {};
  sequences.clear();
  for (int64_t i = 0; i < batch.sequences(); ++i) {
    sequences.push_back(SequenceOf(batch, i));
    if (!scores_pairs_) continue;
    sequences.back().probabilities = watcher.ProbabilitiesTarget(layer, i);
  }
}

bool RunState::CanSkipRows(const PackedBatch& batch) const {
  return !batch.wanted_rows.empty() && batch.states.empty() &&
         static_cast<int64_t>(batch.wanted_rows.size()) < batch.tokens() && !WantsProbabilities();
}

bool RunState::WantsProbabilities() const {
  return std::any_of(sequences.begin(), sequences.end(), [](const AttentionSequence& sequence) {
    return sequence.probabilities != nullptr;
  });
}

void RunState::NarrowQueries(const PackedBatch& batch) {
  wanted_rows = batch.wanted_rows;
  sequences.clear();
  int64_t i = -1;
  for (const int32_t row : batch.wanted_rows) {
    const int64_t before = i;
    while (row >= batch.cu_seqlens[i + 1]) ++i;
    const int64_t begin = batch.cu_seqlens[i], query = row - begin;
    if (i == before && sequences.back().first_query + sequences.back().queries == query) {
      ++sequences.back().queries;
      continue;
    }
    sequences.push_back(SequenceOf(batch, i));
    sequences.back().first_query = query;
    sequences.back().queries = 1;
  }
}

MatrixView<float> RunState::Compact(absl::Span<const int32_t> rows, MatrixView<float> buffer) {
  const int64_t count = static_cast<int64_t>(rows.size());
  for (int64_t i = 0; i < count; ++i) {
    if (rows[i] != i) std::copy_n(buffer.row(rows[i]), buffer.cols, buffer.row(i));
  }
  const MatrixView<float> padded = buffer.Rows(0, PaddedRows(count));
  ZeroRows(padded.Rows(count, padded.rows - count));
  return padded;
}

void RunState::Expand(absl::Span<const int32_t> rows, MatrixView<float> buffer) {
  for (int64_t i = static_cast<int64_t>(rows.size()); i-- > 0;) {
    if (rows[i] != i) std::copy_n(buffer.row(i), buffer.cols, buffer.row(rows[i]));
  }
}

MatrixView<float> RunState::CrossKvInput(int64_t first, int64_t count) {
  const MatrixView<float> rows = activations.inputs().Rows(first, PaddedRows(count));
  ZeroRows(rows.Rows(count, rows.rows - count));
  return rows;
}

PreparedOperand RunState::Prepare(const PackedLinear* reader) {
  return reader == nullptr ? PreparedOperand() : gemm.Prepare(*reader, tokens);
}

void RunState::Apply(const PackedLinear& linear, const LinearInput& x, MatrixView<float> y,
                     Activation activation) {
  ApplyLinear(team, linear, x, y, activation, gemm);
}

void RunState::ProjectEmbedded(const PackedLinear& linear, MatrixView<float> target) {
  // The product writes whole tiles, and the rows after `target` may belong to another sequence.
  const int64_t padded_rows = PaddedRows(target.rows);
  const MatrixView<float> x = activations.embedded().Rows(0, padded_rows);
  const MatrixView<float> projected = activations.outer().Rows(0, padded_rows);
  ZeroRows(x.Rows(target.rows, padded_rows - target.rows));
  Apply(linear, x, projected);
  for (int64_t r = 0; r < target.rows; ++r) {
    std::copy_n(projected.row(r), target.cols, target.row(r));
  }
}

}  // namespace attendant
