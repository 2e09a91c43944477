// The operands of the micro-benchmarks of the kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/cpu_budget.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/attention/relative_positions.h"
#include "engine/kernels/gemm/compute_support.h"
#include "engine/kernels/gemm/gemm.h"

namespace attendant::bench {

// Returns a team of the whole CPU budget, which the engine uses.
inline const ThreadTeam& Team() {
  static const ThreadTeam team(MeasureCpuBudget().threads);
  return team;
}

// A matrix [rows, cols] with values in [-1, 1].
class Matrix {
 public:
  Matrix(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), values_(rows * cols) { Fill(); }

  void Fill() {
    for (int64_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(i * 101 % 257 - 128) / 128.0f;
    }
  }
  MatrixView<float> view() { return {values_.data(), rows_, cols_, cols_}; }

 private:
  int64_t rows_;
  int64_t cols_;
  AlignedBuffer<float> values_;
};

// The mode in which this CPU computes linear layers of this type.
inline std::vector<ComputeType> SupportedTypes() {
  std::vector<ComputeType> types;
  for (const ComputeType type : kComputeTypes) {
    if (CheckComputeMode({.type = type}).ok()) types.push_back(type);
  }
  return types;
}

struct LinearShape {
  ComputeType type;
  int64_t in;
  int64_t out;
  int64_t rows;

  bool operator==(const LinearShape&) const = default;
};

// One layer for each of `count` models, with distinct weights, so that these come from the same
// level of the memory hierarchy as in a model.
class Linears {
 public:
  Linears(int count, const LinearShape& shape) : workspace_(Team()) {
    Matrix weight(shape.out, shape.in);
    const std::vector<float> bias(static_cast<size_t>(shape.out), 0.1f);
    for (int i = 0; i < count; ++i) {
      auto packed = PackedLinear::Pack(weight.view(), bias, {.type = shape.type});
      if (!packed.ok()) std::abort();
      layers_.push_back(*std::move(packed));
      workspace_.Reserve(layers_.back(), PaddedRows(shape.rows));
    }
  }

  // Returns the next layer.
  void Apply(MatrixView<float> x, MatrixView<float> y, Activation activation) {
    workspace_.Apply(layers_[next_], x, y, activation);
    next_ = (next_ + 1) % layers_.size();
  }

 private:
  std::vector<PackedLinear> layers_;
  size_t next_ = 0;
  GemmWorkspace workspace_;
};

// Returns the layers of the last shape that was asked for, because packing them takes longer than a
// repetition.
inline Linears& LinearsOf(int count, const LinearShape& shape) {
  static std::optional<std::pair<int, LinearShape>> key;
  static std::unique_ptr<Linears> linears;
  if (key != std::pair(count, shape)) {
    linears = nullptr;
    linears = std::make_unique<Linears>(count, shape);
    key = {count, shape};
  }
  return *linears;
}

inline AttentionShape ShapeOf(int64_t heads, int64_t width, ComputeType type) {
  return {{.heads = heads,
           .key_width = width,
           .value_width = width,
           .score_scale = 1 / std::sqrt(static_cast<float>(width))},
          /*relative_rows=*/0,
          {.type = type}};
}

// Sequences of equal lengths on a fused projection.
class AttentionCase {
 public:
  AttentionCase(int64_t sequences, int64_t length, const AttentionShape& shape)
      : shape_(shape),
        qkv_(sequences * length, (shape.heads + 2 * shape.kv_heads()) * shape.key_width),
        context_(sequences * length, shape.heads * shape.key_width),
        positions_(shape.relative_rows, shape.heads * shape.key_width),
        row_of_(2 * length - 1),
        workspace_(Team().size(), shape_, length) {
    if (shape.relative_rows > 0) {
      FillDistanceRows(shape.relative_rows / 2, 2 * shape.relative_rows, absl::MakeSpan(row_of_));
    }
    for (int64_t i = 0; i < sequences; ++i) sequences_.push_back({i * length, length});
  }

  void Run() {
    const int64_t width = shape_.heads * shape_.key_width;
    const int64_t shared = shape_.kv_heads() * shape_.key_width;
    const MatrixView<float> qkv = qkv_.view();
    AttentionInput input = {.queries = qkv.Columns(0, width),
                            .keys = qkv.Columns(width, shared),
                            .values = qkv.Columns(width + shared, shared)};
    if (shape_.relative_rows > 0) {
      input.relative = {.keys = positions_.view(),
                        .queries = positions_.view(),
                        .row_of = row_of_.data(),
                        .middle = static_cast<int64_t>(row_of_.size()) / 2};
    }
    Attention(Team(), shape_, input, sequences_, context_.view(), workspace_);
  }

 private:
  AttentionShape shape_;
  Matrix qkv_;
  Matrix context_;
  Matrix positions_;  // for disentangled attention
  std::vector<int32_t> row_of_;
  AttentionWorkspace workspace_;
  std::vector<AttentionSequence> sequences_;
};

}  // namespace attendant::bench
