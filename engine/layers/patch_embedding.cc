#include "engine/layers/patch_embedding.h"

#include <algorithm>
#include <utility>

#include "engine/kernels/norm/norm.h"
#include "engine/layers/state/rows.h"

namespace attendant {

PatchEmbedding::PatchEmbedding(const PatchEmbeddingShape& shape, const LayerShape& layer,
                               WeightLoader& loader)
    : shape_(shape) {
  const int64_t width = layer.hidden_size, first_register = shape.prefix_positions();
  if (shape.feature_width > 0) {
    projection_ = loader.ReadLinear("front.projection", width, shape.feature_width);
  }
  AlignedBuffer<float> prefix_tokens(shape.prefix_tokens() * width);
  const auto read_rows = [&](const char* name, int64_t first, int64_t rows) {
    if (rows == 0) return;
    std::copy_n(loader.ReadTable(name, rows * width).data(), rows * width,
                prefix_tokens.data() + first * width);
  };
  read_rows("front.class", 0, shape.has_class ? 1 : 0);
  read_rows("front.distillation", 1, shape.has_distillation ? 1 : 0);
  read_rows("front.registers", first_register, shape.registers);
  if (shape.positions > 0) {
    const AlignedBuffer<float> read = loader.ReadTable("front.positions", shape.positions * width);
    AddRow(read.data(), shape.prefix_positions() * width, prefix_tokens.data());
    AlignedBuffer<float> positions(shape.features() * width);
    std::copy_n(read.data() + shape.prefix_positions() * width, positions.size(), positions.data());
    positions_ = loader.Keep(std::move(positions));
  }
  prefix_tokens_ = loader.Keep(std::move(prefix_tokens));
  if (shape.has_norm) norm_ = loader.AddNorm("front.norm", width, layer.norms);
}

void PatchEmbedding::Project(MatrixView<float> target, Workspace& workspace) const {
  workspace.ProjectEmbedded(projection_, target);
}

void PatchEmbedding::Apply(absl::Span<const int32_t> positions, MatrixView<float> rows,
                           Workspace& workspace) const {
  const int64_t prefix_tokens = shape_.prefix_tokens();
  std::copy_n(prefix_tokens_.data(), prefix_tokens * rows.cols, rows.data);
  if (positions_.size() > 0) {
    for (size_t i = 0; i < positions.size(); ++i) {
      AddRow(positions_.data() + positions[i] * rows.cols, rows.cols,
             rows.row(prefix_tokens + static_cast<int64_t>(i)));
    }
  }
  if (norm_) LayerNorm(workspace.team, rows, workspace.norm(*norm_), rows);
}

}  // namespace attendant
