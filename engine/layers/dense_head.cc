#include "engine/layers/dense_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/norm/norm.h"
#include "engine/layers/pooling.h"
#include "engine/layers/state/rows.h"

namespace attendant {

absl::Status DenseHead::Add(const std::string& name, const DenseShape& shape,
                            WeightLoader& loader) {
  ASSIGN_OR_RETURN(PackedLinear linear, loader.ReadFloat32Linear(name, shape.width, out_));
  layers_.push_back({std::move(linear), shape.activation, shape.residual});
  if (shape.residual == Residual::kProjection) {
    ASSIGN_OR_RETURN(layers_.back().projection,
                     loader.ReadFloat32Linear(name + ".residual", shape.width, out_));
  }
  out_ = shape.width;
  return absl::OkStatus();
}

absl::Status DenseHead::LoadLayers(const DenseHeadShape& head, const LayerShape& layer,
                                   WeightLoader& loader) {
  const std::string name = Name(head.kind);
  for (const NamedDense& dense : head.shape->dense_layers()) {
    RETURN_IF_ERROR(Add(absl::StrCat(name, ".", dense.name), dense.shape, loader));
    if (layers_.size() > 1 || !head.shape->has_dense_norm) continue;
    ASSIGN_OR_RETURN(layers_.back().norm, loader.AddNorm(name + ".dense_norm", out_, layer.norms));
  }
  return absl::OkStatus();
}

absl::Status DenseHead::LoadBlock(const DenseHeadShape& head, const LayerShape& layer,
                                  WeightLoader& loader) {
  const DenseShape& shape = head.shape->block;
  const std::string name = Name(head.kind);
  if (shape.width == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int norm, loader.AddNorm(name + ".block_norm", out_, layer.norms));
  ASSIGN_OR_RETURN(PackedLinear in,
                   loader.ReadFloat32Linear(name + ".block_in", shape.width, out_));
  ASSIGN_OR_RETURN(PackedLinear out,
                   loader.ReadFloat32Linear(name + ".block_out", out_, shape.width));
  block_ = Block{norm, std::move(in), shape.activation, std::move(out)};
  return absl::OkStatus();
}

absl::StatusOr<DenseHead> DenseHead::Load(const DenseHeadShape& head, const LayerShape& layer,
                                          WeightLoader& loader) {
  DenseHead loaded(head.kind, head.shape->input_width(layer.hidden_size));
  loaded.normalizes_ = head.shape->normalize;
  RETURN_IF_ERROR(loaded.LoadLayers(head, layer, loader));
  RETURN_IF_ERROR(loaded.LoadBlock(head, layer, loader));
  return loaded;
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
    workspace.gemm.Apply(*layer.projection, input, residual);
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
  // The index of a token among the tokens of all sequences.
  struct Place {
    size_t sequence = 0;
    int64_t token = 0;
  };
  const auto skip_ended = [&](Place& place) {
    while (place.sequence < sequences.size() && place.token == sequences[place.sequence].rows) {
      place = {place.sequence + 1, 0};
    }
    return place.sequence < sequences.size();
  };
  Place next;
  while (skip_ended(next)) {
    std::array<Place, kHeadRows> places;
    int64_t rows = 0;
    const int64_t most = workspace.activations.head_inputs().rows;
    for (; rows < most && skip_ended(next); ++rows, ++next.token) places[rows] = next;
    const auto fill = [&](int64_t row, absl::Span<float> input) {
      const Place& place = places[row];
      std::copy_n(hidden_states.row(sequences[place.sequence].first_row + place.token),
                  input.size(), input.data());
    };
    const MatrixView<float> weights = head.Forward(rows, fill, workspace);
    for (int64_t row = 0; row < rows; ++row) {
      const VocabularySequence& sequence = sequences[places[row].sequence];
      const int32_t id = sequence.ids[places[row].token];
      if (!absl::c_binary_search(excluded_ids, id)) Raise(*weights.row(row), sequence.weights[id]);
    }
  }
}

}  // namespace attendant
