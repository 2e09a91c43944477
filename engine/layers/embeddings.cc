#include "engine/layers/embeddings.h"

#include <algorithm>
#include <utility>

#include "engine/kernels/convert.h"
#include "engine/kernels/norm/norm.h"
#include "engine/kernels/row_tiles.h"
#include "engine/layers/state/rows.h"

namespace attendant {
namespace {

// Returns the scale of a sequence's word embeddings if `masks` of its `tokens` are mask tokens.
float WordScale(int64_t masks, int64_t tokens) {
  const auto kept = static_cast<double>(tokens - masks);
  return kept > 0 ? static_cast<float>(0.88 * static_cast<double>(tokens) / kept) : 0;
}

constexpr int64_t kColumnsAtOnce = 256;  // of a row that is converted

}  // namespace

EmbeddingTable::EmbeddingTable(const std::string& name, int64_t rows, int64_t width, DataType type,
                               WeightLoader& loader)
    : width_(width), type_(type) {
  if (rows > 0) rows_ = loader.Keep(loader.ReadStoredTable(name, rows * width, type));
}

void EmbeddingTable::Take(int64_t row, float scale, float* target) const {
  ToFloat(type_, Row(row), width_, target);
  if (scale == 1) return;
  for (int64_t j = 0; j < width_; ++j) target[j] *= scale;
}

void EmbeddingTable::Add(int64_t row, float* sum) const {
  if (type_ == DataType::kFloat32) {
    return AddRow(reinterpret_cast<const float*>(Row(row)), width_, sum);
  }
  float values[kColumnsAtOnce];
  for (int64_t first = 0; first < width_; first += kColumnsAtOnce) {
    const int64_t count = std::min(kColumnsAtOnce, width_ - first);
    ToFloat(type_, Row(row) + first * ByteWidth(type_), count, values);
    AddRow(values, count, sum + first);
  }
}

Embeddings::Embeddings(const EmbeddingShape& shape, const LayerShape& layer, WeightLoader& loader)
    : shape_(shape) {
  const int64_t hidden_size = layer.hidden_size, added = shape.added_width(hidden_size);
  const auto read = [&](const char* name, int64_t rows, int64_t width) {
    return EmbeddingTable(name, rows, width, shape.table_type, loader);
  };
  word_ = read("embeddings.word", shape.vocabulary, shape.width);
  position_ = read("embeddings.position", shape.positions, added);
  token_type_ = read("embeddings.token_type", shape.token_types, added);
  task_type_ = read("embeddings.task_type", shape.task_types, added);
  if (shape.has_norm) {
    norm_ = loader.AddNorm("embeddings.norm", shape.norm_width(hidden_size), layer.norms.kind,
                           shape.norm_epsilon);
  }
  if (shape.projected(hidden_size)) {
    projection_ = loader.ReadLinear("embeddings.projection", hidden_size, shape.projected_from());
  }
}

void Embeddings::Embed(const TokenIds& ids, MatrixView<float> target, Workspace& workspace) const {
  if (target.rows == 0) return;
  if (!projection_) {
    SumTables(ids, target, workspace.team);
    if (norm_) LayerNorm(workspace.team, target, workspace.norm(*norm_), target);
    return;
  }
  const MatrixView<float> kept_sums = workspace.activations.embedded().Rows(0, target.rows);
  shape_.projects_words ? TakeWords(ids, kept_sums, workspace.team)
                        : SumTables(ids, kept_sums, workspace.team);
  if (norm_ && !shape_.norm_is_last) {
    LayerNorm(workspace.team, kept_sums, workspace.norm(*norm_), kept_sums);
  }
  workspace.ProjectEmbedded(projection_, target);
  for (int64_t r = 0; shape_.projects_words && r < target.rows; ++r) {
    AddTables(ids, r, target.row(r));
  }
  if (norm_ && shape_.norm_is_last) {
    LayerNorm(workspace.team, target, workspace.norm(*norm_), target);
  }
}

void Embeddings::AddTables(const TokenIds& ids, int64_t r, float* sum) const {
  if (shape_.token_types > 0) {
    token_type_.Add(ids.token_types.empty() ? 0 : ids.token_types[r], sum);
  }
  if (shape_.positions > 0) position_.Add(ids.positions[r], sum);
  if (shape_.task_types > 0) task_type_.Add(0, sum);
}

void Embeddings::SumTables(const TokenIds& ids, MatrixView<float> sums,
                           const ThreadTeam& team) const {
  ForRows(team, sums.rows, [&](int, int64_t r) {
    word_.Take(ids.words[r], shape_.word_scale, sums.row(r));
    AddTables(ids, r, sums.row(r));
  });
  if (shape_.mask_id >= 0) LeaveOutMasks(ids, sums, team);
}

void Embeddings::LeaveOutMasks(const TokenIds& ids, MatrixView<float> words,
                               const ThreadTeam& team) const {
  const int32_t whole[] = {0, static_cast<int32_t>(words.rows)};
  const absl::Span<const int32_t> bounds = ids.cu_seqlens.empty() ? whole : ids.cu_seqlens;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const int64_t first = bounds[i], rows = bounds[i + 1] - first;
    const auto is_mask = [&](int64_t r) { return ids.words[first + r] == shape_.mask_id; };
    int64_t masks = 0;
    for (int64_t r = 0; r < rows; ++r) masks += is_mask(r) ? 1 : 0;
    const float scale = WordScale(masks, rows);
    ForRows(team, rows, [&](int, int64_t r) {
      float* row = words.row(first + r);
      for (int64_t c = 0; c < words.cols; ++c) row[c] = is_mask(r) ? 0 : row[c] * scale;
    });
  }
}

void Embeddings::TakeWords(const TokenIds& ids, MatrixView<float> words,
                           const ThreadTeam& team) const {
  const int64_t width = shape_.width;
  const auto are_neighbours = [&](int64_t r) {  // tokens r and r + 1
    return r >= 0 && r + 1 < words.rows &&
           (ids.ordinals.empty() || ids.ordinals[r] + 1 == ids.ordinals[r + 1]);
  };
  ForRows(team, words.rows, [&](int, int64_t r) {
    float* to = words.row(r);
    const auto take = [&](bool is_there, int64_t token) {
      if (is_there) {
        word_.Take(ids.words[token], shape_.word_scale, to);
      } else {
        std::fill_n(to, width, 0.0f);
      }
      to += width;
    };
    if (shape_.has_neighbours) take(are_neighbours(r), r + 1);
    take(true, r);
    if (shape_.has_neighbours) take(are_neighbours(r - 1), r - 1);
  });
}

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
