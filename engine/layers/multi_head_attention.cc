#include "engine/layers/multi_head_attention.h"

#include <algorithm>
#include <utility>

#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/norm/norm.h"
#include "engine/kernels/rope.h"
#include "engine/kernels/row_tiles.h"
#include "engine/layers/state/rows.h"
#include "engine/model/layer_parts.h"

namespace attendant {

MultiHeadAttention::MultiHeadAttention(const std::string& prefix, const LayerShape& shape,
                                       WeightLoader& loader, const AlignedBuffer<float>& distances)
    : shape_(shape), attention_(AttentionShapeOf(shape, loader.mode())) {
  LoadInputs(prefix, loader);
  if (shape.attention.has_output_projection) LoadOutput(prefix, loader);
  LoadNorms(prefix, loader);
  const PackedLinear qkv = inputs_.size() == 1 ? inputs_.front().linear : PackedLinear();
  extra_ = AttentionExtra(prefix, shape, qkv, distances, loader);
}

void MultiHeadAttention::LoadNorms(const std::string& prefix, WeightLoader& loader) {
  const QueryKeyNorms norms = shape_.attention.query_key_norms;
  if (norms == QueryKeyNorms::kNone) return;
  const bool each = norms == QueryKeyNorms::kEachHead;
  const auto read = [&](const char* name, int64_t columns) {
    return loader.AddNorm(prefix + name, each ? shape_.attention.key_width : columns, shape_.norms);
  };
  query_norm_ = read("query_norm", shape_.query_columns());
  key_norm_ = read("key_norm", shape_.key_columns());
}

// Fuses projections that read the same rows into one linear layer.
void MultiHeadAttention::LoadInputs(const std::string& prefix, WeightLoader& loader) {
  const std::vector<ModelPart> projections = InputProjections(shape_);
  int64_t column = 0;
  for (size_t begin = 0, end = 0; begin < projections.size(); begin = end) {
    std::vector<LinearPart> parts;
    int64_t out = 0;
    do {
      parts.push_back({prefix + projections[end].name, projections[end].out.value()});
      out += parts.back().out;
      ++end;
    } while (end < projections.size() && ArePackedAsOne(projections[begin], projections[end]));
    inputs_.push_back({std::exchange(column, column + out),
                       loader.ReadFusedLinear(parts, projections[begin].in.value())});
  }
}

void MultiHeadAttention::LoadOutput(const std::string& prefix, WeightLoader& loader) {
  const LinearPart part = {prefix + "output", shape_.projected_width(),
                           shape_.extras.has_branch_scale ? prefix + "attention_scale" : ""};
  if (shape_.attention.heads == 0) {
    bias_alone_ = loader.Keep(loader.ReadBias(part));
  } else {
    output_ = loader.ReadFusedLinear({part}, shape_.context_width());
  }
}

PreparedRows MultiHeadAttention::Context(const LinearInput& x, const LayerRun& run) const {
  const bool pairs = ProjectsToPairs(run);
  const int64_t depth = pairs ? 2 : 1;
  const MatrixView<const float> qkv = pairs ? ProjectToPairs(x, run) : ProjectInput(x, run);
  AttentionInput input = {
      .queries = qkv.Columns(0, shape_.query_columns() / depth),
      .keys = qkv.Columns(shape_.key_column() / depth, shape_.key_columns() / depth),
      .values = qkv.Columns(shape_.value_column() / depth, shape_.value_columns() / depth)};
  input.are_pairs = pairs;
  input.distances = run.tables.distances();
  extra_.AddTo(input, run);
  if (run.WantsProbabilities() && !run.has_cross_kv) {
    run.observer->OnValues(run.layer, input.values);
  }
  Workspace& workspace = run.workspace;
  const MatrixView<float> rows =
      run.Narrow(workspace.activations.context(), shape_.context_width());
  // The attention writes the packed input head by head.
  const bool packs = output_ && run.selected_rows.empty() && RoundsElementwise(workspace.mode);
  const PreparedRows context = {rows, packs ? run.Prepare(rows.cols) : PackedInput()};
  workspace.fully_masked_rows +=
      Attention(workspace.team, attention_, input, run.queries, context, workspace.attention);
  return context;
}

MatrixView<const float> MultiHeadAttention::ProjectToPairs(const LinearInput& x,
                                                           const LayerRun& run) const {
  const PackedLinear& linear = inputs_.front().linear;
  const MatrixView<float> qkv =
      run.Narrow(run.workspace.activations.qkv(), linear.out_features() / 2);
  run.workspace.gemm.Apply(linear, {x.rows.Columns(0, linear.in_features()), x.packed},
                           PreparedRows::Pairs(qkv));
  return qkv;
}

bool MultiHeadAttention::ProjectsToPairs(const LayerRun& run) const {
  return inputs_.size() == 1 && AcceptsBf16Pairs(attention_) && !query_norm_ && !key_norm_ &&
         shape_.relative_positions.kind != RelativePositions::kRotary && !run.has_cross_kv &&
         run.selected_rows.empty() && !run.WantsProbabilities();
}

MatrixView<const float> MultiHeadAttention::ProjectInput(const LinearInput& x,
                                                         const LayerRun& run) const {
  if (inputs_.empty()) return x.rows;
  Workspace& workspace = run.workspace;
  const auto& [last_column, last] = inputs_.back();
  const MatrixView<float> qkv =
      run.Narrow(workspace.activations.qkv(), last_column + last.out_features());
  const int64_t queries = shape_.query_columns();
  const int64_t inside =
      shape_.extras.bottleneck.values_from_outside ? shape_.value_column() : qkv.cols;
  const bool narrow = CanNarrowQueries(x.rows, run);
  if (narrow) ProjectSelectedQueries(x.rows, qkv, run);
  ProjectColumns(narrow ? queries : 0, run.has_cross_kv ? queries : inside, x, qkv, workspace);
  ProjectColumns(inside, qkv.cols, run.Kept(workspace.activations.hidden()), qkv, workspace);
  const bool rotates = shape_.relative_positions.kind == RelativePositions::kRotary;
  if (query_norm_ || key_norm_ || rotates) {
    ForRowTiles(workspace.team, qkv.rows, [&](int, int64_t begin, int64_t count) {
      NormalizeAndRotate(qkv.Rows(begin, count), begin, run);
    });
  }
  return qkv;
}

void MultiHeadAttention::NormalizeAndRotate(MatrixView<float> rows, int64_t first,
                                            const LayerRun& run) const {
  if (query_norm_) {
    NormalizeHeads(rows.Columns(0, shape_.query_columns()), run.workspace.norm(*query_norm_));
  }
  if (run.has_cross_kv) return;
  if (key_norm_) {
    NormalizeHeads(rows.Columns(shape_.key_column(), shape_.key_columns()),
                   run.workspace.norm(*key_norm_));
  }
  const RelativePositionShape& relative = shape_.relative_positions;
  if (relative.kind != RelativePositions::kRotary) return;
  Rotate(run.tables.rotary(relative.rotary),
         run.positions.subspan(static_cast<size_t>(first), static_cast<size_t>(rows.rows)),
         shape_.attention.key_width, rows.Columns(0, shape_.value_column()));
}

bool MultiHeadAttention::CanNarrowQueries(MatrixView<const float> x, const LayerRun& run) const {
  const int64_t wanted = static_cast<int64_t>(run.selected_rows.size());
  return wanted > 0 && PaddedRows(wanted) < x.rows && !shape_.attention.keys_are_queries &&
         x.cols <= run.workspace.activations.context().cols;
}

// Collects the selected rows in the context buffer, which the attention fills only later.
void MultiHeadAttention::ProjectSelectedQueries(MatrixView<const float> x, MatrixView<float> qkv,
                                                const LayerRun& run) const {
  const int64_t queries = shape_.query_columns();
  const int64_t count = static_cast<int64_t>(run.selected_rows.size());
  const MatrixView<float> wanted =
      run.Narrow(run.workspace.activations.context(), x.cols).Rows(0, count);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(x.row(run.selected_rows[i]), x.cols, wanted.row(i));
  }
  ProjectColumns(0, queries, wanted, qkv.Rows(0, count), run.workspace);
  ExpandRows(run.selected_rows, qkv.Columns(0, queries));
}

void MultiHeadAttention::ProjectColumns(int64_t begin, int64_t end, const LinearInput& x,
                                        MatrixView<float> y, Workspace& workspace) const {
  for (const Input& input : inputs_) {
    const int64_t out = input.linear.out_features();
    const LinearColumns columns = {input.linear, std::max<int64_t>(0, begin - input.column),
                                   std::min(out, end - input.column)};
    if (columns.begin >= columns.end) continue;
    const LinearInput read = {x.rows.Columns(0, input.linear.in_features()), x.packed};
    workspace.gemm.Apply(columns, read, y.Columns(input.column, out));
  }
}

CrossKv MultiHeadAttention::ProjectCrossKv(const CrossKvRange& rows, Workspace& workspace) const {
  const int64_t key = shape_.key_column(), keys_end = key + shape_.key_columns();
  const int64_t value = shape_.value_column(), values_end = value + shape_.value_columns();
  const auto project = [&](int64_t first_row, int64_t begin, int64_t end) {
    const MatrixView<float> x = workspace.activations.inputs().Rows(first_row, rows.rows);
    if (inputs_.empty()) return x;
    const MatrixView<float> y = workspace.activations.qkv().Rows(first_row, rows.rows);
    ProjectColumns(begin, end, x, y, workspace);
    return y;
  };
  const bool same_rows = rows.first_key == rows.first_value;
  const MatrixView<float> of_keys =
      project(rows.first_key, key, same_rows ? std::max(keys_end, values_end) : keys_end);
  const MatrixView<float> of_values =
      same_rows ? of_keys : project(rows.first_value, value, values_end);
  const MatrixView<float> keys = of_keys.Columns(key, keys_end - key);
  if (key_norm_) {
    ForRowTiles(workspace.team, keys.rows, [&](int, int64_t begin, int64_t count) {
      NormalizeHeads(keys.Rows(begin, count), workspace.norm(*key_norm_));
    });
  }
  return {keys, of_values.Columns(value, values_end - value)};
}

MatrixView<float> MultiHeadAttention::Project(const PreparedRows& context,
                                              const LayerRun& run) const {
  const MatrixView<float> projected = run.Kept(run.workspace.activations.branch());
  if (output_) {
    run.workspace.gemm.Apply(output_, context, projected);
  } else if (bias_alone_.size() > 0) {
    for (int64_t r = 0; r < projected.rows; ++r) {
      std::copy_n(bias_alone_.data(), bias_alone_.size(), projected.row(r));
    }
  } else {
    return context.rows;
  }
  return projected;
}

}  // namespace attendant
