#include "engine/layers/extras/token_convolution.h"

#include <algorithm>
#include <iterator>

#include "engine/kernels/row_tiles.h"
#include "engine/layers/state/rows.h"

namespace attendant {
namespace {

// Returns the index in the sequence of the row at `offset` positions from `row`, or -1 if no token
// has that position.
int64_t RowAt(const AttentionSequence& sequence, int64_t row, int64_t offset) {
  const absl::Span<const int32_t> positions = sequence.positions;
  if (positions.empty()) {
    const int64_t at = row + offset;
    return at >= 0 && at < sequence.length ? at : -1;
  }
  const int64_t wanted = positions[row] + offset;
  const auto at = std::lower_bound(positions.begin(), positions.end(), wanted);
  return at != positions.end() && *at == wanted ? at - positions.begin() : -1;
}

// Returns the sequence that contains a row of the batch.
const AttentionSequence& SequenceOf(absl::Span<const AttentionSequence> sequences, int64_t row) {
  const auto behind = std::upper_bound(
      sequences.begin(), sequences.end(), row,
      [](int64_t wanted, const AttentionSequence& one) { return wanted < one.row_begin; });
  return *std::prev(behind);
}

}  // namespace

// Loads each group as a matrix: transposes [out, in, taps] of the checkpoint to [out, taps * in].
TokenConvolution::TokenConvolution(const std::string& prefix, const LayerShape& shape,
                                   WeightLoader& loader)
    : shape_(shape.extras.convolution), width_(shape.hidden_size) {
  const int64_t columns = width_ / shape_.groups, in = columns * shape_.taps;
  const AlignedBuffer<float> weight = loader.ReadTable(prefix + "convolution.weight", width_ * in);
  const AlignedBuffer<float> bias = loader.ReadOptional(prefix + "convolution.bias", width_);
  AlignedBuffer<float> turned(columns * in);
  for (int64_t group = 0; group < shape_.groups; ++group) {
    const float* from = weight.data() + group * columns * in;
    for (int64_t out = 0; out < columns; ++out) {
      for (int64_t i = 0; i < in; ++i, ++from) {
        turned[out * in + i % shape_.taps * columns + i / shape_.taps] = *from;
      }
    }
    const absl::Span<const float> own_bias(bias.data() + group * columns,
                                           bias.size() == 0 ? 0 : columns);
    groups_.push_back(loader.Pack({turned.data(), columns, in, in}, own_bias, ProductRows::kChunk));
  }
}

void TokenConvolution::Begin(BlockRows& block_rows, const LayerRun& run) const {
  if (run.stage) return;
  const MatrixView<const float> x = block_rows.residual;
  const MatrixView<float> y = run.Kept(run.workspace.activations.convolved());
  const int64_t columns = width_ / shape_.groups, in = columns * shape_.taps;
  for (int64_t begin = 0; begin < x.rows; begin += kFeedForwardRows) {
    const int64_t rows = std::min(kFeedForwardRows, x.rows - begin);
    const MatrixView<float> taps = run.workspace.activations.convolution_taps().Rows(0, rows);
    Gather(x, begin, taps, run);
    for (int64_t group = 0; group < shape_.groups; ++group) {
      run.workspace.gemm.Apply(groups_[group], taps.Columns(group * in, in),
                               y.Rows(begin, rows).Columns(group * columns, columns),
                               shape_.activation);
    }
  }
}

void TokenConvolution::KeepSelectedRows(const LayerRun& run) const {
  CompactRows(run.selected_rows, run.workspace.activations.convolved());
}

MatrixView<float> TokenConvolution::Forward(const LinearInput& /*x*/, const LayerRun& run) const {
  return run.Kept(run.workspace.activations.convolved());
}

void TokenConvolution::Gather(MatrixView<const float> x, int64_t first, MatrixView<float> taps,
                              const LayerRun& run) const {
  ForRows(run.workspace.team, taps.rows, [&](int, int64_t r) {
    const AttentionSequence& sequence = SequenceOf(run.sequences, first + r);
    GatherRow(x, sequence, first + r - sequence.row_begin, taps.row(r));
  });
}

void TokenConvolution::GatherRow(MatrixView<const float> x, const AttentionSequence& sequence,
                                 int64_t row, float* taps) const {
  const int64_t columns = width_ / shape_.groups;
  for (int64_t tap = 0; tap < shape_.taps; ++tap) {
    const int64_t from = RowAt(sequence, row, tap - shape_.taps / 2);
    for (int64_t group = 0; group < shape_.groups; ++group) {
      float* target = taps + (group * shape_.taps + tap) * columns;
      if (from < 0) {
        std::fill_n(target, columns, 0.0f);
      } else {
        std::copy_n(x.row(sequence.row_begin + from) + group * columns, columns, target);
      }
    }
  }
}

}  // namespace attendant
