#include "engine/layers/dense_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/kernels/norm/norm.h"
#include "engine/layers/pooling.h"

namespace attendant {

DenseHead::DenseHead(const DenseHeadShape& head, const LayerShape& layer, WeightLoader& loader)
    : kind_(head.kind),
      in_(head.shape->input_width(layer.hidden_size)),
      out_(in_),
      normalizes_(head.shape->normalize) {
  const std::string prefix = absl::StrCat(Name(kind_), ".");
  for (const auto& [name, shape] : head.shape->dense_layers()) {
    Layer& added =
        layers_.emplace_back(Layer{loader.ReadFloat32Linear(prefix + name, shape.width, out_),
                                   shape.activation, shape.residual});
    if (shape.residual == Residual::kProjection) {
      added.projection = loader.ReadFloat32Linear(prefix + name + ".residual", shape.width, out_);
    }
    out_ = shape.width;
    if (layers_.size() > 1 || !head.shape->has_dense_norm) continue;
    added.norm = loader.AddNorm(prefix + "dense_norm", out_, layer.norms);
  }
  const DenseShape& block = head.shape->block;
  if (block.width == 0) return;
  block_ = Block{loader.AddNorm(prefix + "block_norm", out_, layer.norms),
                 loader.ReadFloat32Linear(prefix + "block_in", block.width, out_), block.activation,
                 loader.ReadFloat32Linear(prefix + "block_out", out_, block.width)};
}

void DenseHead::ApplyBlock(MatrixView<float> x, MatrixView<float> y, Workspace& workspace) const {
  const MatrixView<float> from = x.Columns(0, out_), to = y.Columns(0, out_);
  const MatrixView<float> inner = x.Columns(out_, block_->in.out_features());
  LayerNorm(workspace.team, from, workspace.norm(block_->norm), to);
  workspace.gemm.Apply(block_->in, to, inner, block_->activation);
  workspace.gemm.Apply(block_->out, inner, to, Activation::kIdentity);
  attendant::Add(workspace.team, to, from, to);
}

void DenseHead::AddResidual(const Layer& layer, MatrixView<float> x, MatrixView<float> room,
                            MatrixView<float> y, Workspace& workspace) {
  const MatrixView<float> input = x.Columns(0, layer.linear.in_features());
  MatrixView<float> residual = input;
  if (layer.projection) {
    residual = room.Columns(y.cols, y.cols);
    workspace.gemm.Apply(layer.projection, input, residual);
  }
  attendant::Add(workspace.team, y, residual, y);
}

MatrixView<float> DenseHead::Forward(int64_t rows, HeadRowFunction fill,
                                     Workspace& workspace) const {
  const ThreadTeam& team = workspace.team;
  MatrixView<float> x = workspace.activations.head_inputs().Rows(0, rows);
  MatrixView<float> y = workspace.activations.head_outputs().Rows(0, rows);
  team.ParallelFor(rows, [&](int, int64_t row) {
    fill(row, {x.row(row), static_cast<size_t>(in_)});
  });
  for (const Layer& layer : layers_) {
    const MatrixView<float> result = y.Columns(0, layer.linear.out_features());
    workspace.gemm.Apply(layer.linear, x.Columns(0, layer.linear.in_features()), result,
                         layer.activation);
    if (layer.residual != Residual::kNone) AddResidual(layer, x, y, result, workspace);
    if (layer.norm) LayerNorm(team, result, workspace.norm(*layer.norm), result);
    std::swap(x, y);
  }
  if (block_) {
    ApplyBlock(x, y, workspace);
    std::swap(x, y);
  }
  const MatrixView<float> result = x.Columns(0, out_);
  if (normalizes_) {
    team.ParallelFor(rows, [&](int, int64_t row) {
      NormalizeToUnitLength({result.row(row), static_cast<size_t>(out_)});
    });
  }
  return result;
}

namespace {

// Propagates NaN.
void Raise(float weight, float& so_far) {
  if (weight > so_far || std::isnan(weight)) so_far = weight;
}

}  // namespace

void WeighTokens(const DenseHead& head, absl::Span<const int32_t> excluded_ids,
                 MatrixView<const float> hidden_states,
                 absl::Span<const VocabularySequence> sequences, Workspace& workspace) {
  for (const VocabularySequence& sequence : sequences) {
    std::fill(sequence.weights.begin(), sequence.weights.end(), 0.0f);
    for (const int32_t id : sequence.ids) {
      if (absl::c_binary_search(excluded_ids, id)) continue;
      sequence.weights[id] = -std::numeric_limits<float>::infinity();  // below any weight
    }
  }
  struct Place {
    const VocabularySequence* sequence;
    int64_t token;
  };
  std::array<Place, kHeadRows> places;
  const int64_t most = workspace.activations.head_inputs().rows;
  int64_t rows = 0;
  const auto flush = [&] {
    const auto fill = [&](int64_t row, absl::Span<float> input) {
      const auto& [sequence, token] = places[row];
      std::copy_n(hidden_states.row(sequence->first_row + token), input.size(), input.data());
    };
    const MatrixView<float> weights = head.Forward(rows, fill, workspace);
    for (int64_t row = 0; row < rows; ++row) {
      const auto& [sequence, token] = places[row];
      const int32_t id = sequence->ids[token];
      if (!absl::c_binary_search(excluded_ids, id)) Raise(*weights.row(row), sequence->weights[id]);
    }
    rows = 0;
  };
  for (const VocabularySequence& sequence : sequences) {
    for (int64_t token = 0; token < sequence.rows; ++token) {
      places[rows++] = {&sequence, token};
      if (rows == most) flush();
    }
  }
  if (rows > 0) flush();
}

}  // namespace attendant
