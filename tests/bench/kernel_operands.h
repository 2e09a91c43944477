// What the micro-benchmarks of the kernels work on.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/cpu_budget.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/gemm.h"

namespace attendant::bench {

// The whole budget, as the engine uses it.
inline const ThreadTeam& Team() {
  static const ThreadTeam team(MeasureCpuBudget("/sys/fs/cgroup").threads);
  return team;
}

// [rows, cols], values in [-1, 1].
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

// Of a batch.
inline constexpr int64_t kMostRows = 4096;

// The same layer of `count` models' layers: distinct weights, so that they come from where they
// come from in a model.
class Linears {
 public:
  Linears(int count, int64_t in, int64_t out) : workspace_(Team().size()) {
    Matrix weight(out, in);
    const std::vector<float> bias(static_cast<size_t>(out), 0.1f);
    for (int i = 0; i < count; ++i) {
      auto packed = PackedLinear::Pack(weight.view(), bias);
      if (!packed.ok()) std::abort();
      layers_.push_back(*std::move(packed));
      workspace_.Reserve(layers_.back(), kMostRows);
    }
  }

  // The next layer.
  void Apply(MatrixView<float> x, MatrixView<float> y, Activation activation) {
    ApplyLinear(Team(), layers_[next_], x, y, activation, workspace_);
    next_ = (next_ + 1) % layers_.size();
  }

 private:
  std::vector<PackedLinear> layers_;
  size_t next_ = 0;
  GemmWorkspace workspace_;
};

// Equal sequences on a fused projection.
class AttentionOperands {
 public:
  AttentionOperands(int64_t sequences, int64_t length, int64_t heads, int64_t head_width)
      : shape_{heads, head_width, head_width, 1 / 8.0f},
        qkv_(sequences * length, 3 * heads * head_width),
        context_(sequences * length, heads * head_width),
        workspace_(Team().size(), shape_, length) {
    for (int64_t i = 0; i < sequences; ++i) sequences_.push_back({i * length, length});
  }

  void Run() {
    const int64_t width = shape_.heads * shape_.key_width;
    const MatrixView<float> qkv = qkv_.view();
    const AttentionInput input = {.queries = qkv.Columns(0, width),
                                  .keys = qkv.Columns(width, width),
                                  .values = qkv.Columns(2 * width, width)};
    Attention(Team(), shape_, input, sequences_, context_.view(), workspace_);
  }

 private:
  AttentionShape shape_;
  Matrix qkv_;
  Matrix context_;
  AttentionWorkspace workspace_;
  std::vector<AttentionSequence> sequences_;
};

}  // namespace attendant::bench
