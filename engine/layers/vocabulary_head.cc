#include "engine/layers/vocabulary_head.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/rounding.h"
#include "engine/kernels/columns.h"
#include "engine/kernels/norm/norm.h"

namespace attendant {
namespace {

// The number of token ids whose logits a worker handles at a time.
constexpr int64_t kStripColumns = 256;

}  // namespace

VocabularyHead::VocabularyHead(const ModelDescription& model, WeightLoader& loader)
    : shape_(*model.vocabulary_head) {
  const int64_t words = model.sparse_width(), width = shape_.width;
  dense_ = loader.ReadLinear("vocabulary_head.dense", width, model.layer.hidden_size,
                             ProductRows::kHead);
  norm_ = loader.AddNorm("vocabulary_head.dense_norm", width, model.layer.norms);
  if (!loader.status().ok()) return;  // the table is large
  const AlignedBuffer<float> weight =
      loader.ReadTable("vocabulary_head.output.weight", words * width);
  const AlignedBuffer<float> bias = loader.ReadOptional("vocabulary_head.output.bias", words);
  const MatrixView<const float> all = {weight.data(), words, width, width};
  for (int64_t first = 0; first < words; first += kVocabularyColumns) {
    const int64_t count = std::min(kVocabularyColumns, words - first);
    absl::Span<const float> own_bias;
    if (bias.size() > 0) own_bias = {bias.data() + first, static_cast<size_t>(count)};
    output_.push_back(loader.Pack(all.Rows(first, count), own_bias, ProductRows::kHead));
  }
}

double VocabularyHead::WeightOf(double logit) const {
  const double weight = std::log1p(logit);
  return shape_.has_two_logarithms ? std::log1p(weight) : weight;
}

void VocabularyHead::Weigh(MatrixView<const float> hidden_states,
                           absl::Span<const VocabularySequence> sequences,
                           Workspace& workspace) const {
  const ThreadTeam& team = workspace.team;
  // Negative logits have weight 0, so every maximum and every sum starts at 0.
  team.ParallelFor(static_cast<int64_t>(sequences.size()), [&](int, int64_t i) {
    std::fill(sequences[i].weights.begin(), sequences[i].weights.end(), 0.0f);
  });
  const MatrixView<float> inputs =
      workspace.activations.head_inputs().Columns(0, dense_.in_features());
  std::vector<Segment> segments;
  int64_t rows = 0;
  const auto flush = [&] {
    if (rows > 0) WeighRows(rows, segments, workspace);
    segments.clear();
    rows = 0;
  };
  for (const VocabularySequence& sequence : sequences) {
    for (int64_t done = 0; done < sequence.rows;) {
      const int64_t most = std::min(sequence.rows - done, inputs.rows);
      // Splitting a sum changes its rounding, so the splits must not depend on other sequences.
      if (shape_.takes_sums && most > inputs.rows - rows) flush();
      const int64_t count = std::min(most, inputs.rows - rows);
      for (int64_t r = 0; r < count; ++r) {
        std::copy_n(hidden_states.row(sequence.first_row + done + r), inputs.cols,
                    inputs.row(rows + r));
      }
      segments.push_back({rows, count, sequence.weights.data()});
      rows += count;
      done += count;
      if (rows == inputs.rows) flush();
    }
  }
  flush();
  if (shape_.takes_sums) return;
  // The weight grows with the logit, so the largest logit has the largest weight.
  team.ParallelFor(static_cast<int64_t>(sequences.size()), [&](int, int64_t i) {
    for (float& weight : sequences[i].weights) {
      if (weight != 0) weight = static_cast<float>(WeightOf(weight));
    }
  });
}

void VocabularyHead::WeighRows(int64_t rows, absl::Span<const Segment> segments,
                               Workspace& workspace) const {
  const MatrixView<float> inputs =
      workspace.activations.head_inputs().Rows(0, rows).Columns(0, dense_.in_features());
  const MatrixView<float> dense =
      workspace.activations.head_outputs().Rows(0, rows).Columns(0, shape_.width);
  workspace.gemm.Apply(dense_, inputs, dense, shape_.activation);
  const PackedInput packed = workspace.gemm.Prepare(output_.front().in_features(), rows);
  LayerNorm(workspace.team, dense, workspace.norm(norm_), {dense, packed});
  const MatrixView<float> logits = workspace.activations.vocabulary_logits().Rows(0, rows);
  int64_t first_word = 0;
  for (const PackedLinear& output : output_) {
    const MatrixView<float> own = logits.Columns(0, output.out_features());
    workspace.gemm.Apply(output, LinearInput(dense, packed), own);
    TakeLogits(own, first_word, segments, workspace.team);
    first_word += output.out_features();
  }
}

void VocabularyHead::TakeLogits(MatrixView<const float> logits, int64_t first_word,
                                absl::Span<const Segment> segments, const ThreadTeam& team) const {
  team.ParallelFor(CeilDivide(logits.cols, kStripColumns), [&](int, int64_t strip) {
    const int64_t begin = strip * kStripColumns;
    const MatrixView<const float> own =
        logits.Columns(begin, std::min(kStripColumns, logits.cols - begin));
    for (const Segment& segment : segments) {
      const MatrixView<const float> x = own.Rows(segment.row, segment.rows);
      float* weights = segment.weights + first_word + begin;
      if (shape_.takes_sums) {
        AddWeights(x, weights);
      } else {
        RaiseToColumnMax(x, weights);
      }
    }
  });
}

void VocabularyHead::AddWeights(MatrixView<const float> logits, float* weights) const {
  std::array<double, kStripColumns> sums = {};
  for (int64_t r = 0; r < logits.rows; ++r) {
    const float* row = logits.row(r);
    for (int64_t j = 0; j < logits.cols; ++j) {
      if (!(row[j] <= 0)) sums[j] += WeightOf(row[j]);  // also NaN, to propagate it
    }
  }
  for (int64_t j = 0; j < logits.cols; ++j) {
    weights[j] = static_cast<float>(weights[j] + sums[j]);
  }
}

}  // namespace attendant
