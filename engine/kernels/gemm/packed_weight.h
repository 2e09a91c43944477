// PackedWeight: the weight of a linear layer, split into panels of columns in the layout that its
// matrix products read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/page_arena.h"
#include "engine/base/rounding.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/kernel_table.h"
#include "engine/kernels/gemm/product_plan.h"

namespace attendant {

// Returns the largest number of columns of a row tile that one thread computes, if `threads`
// threads share the panels of `width` columns of a layer with `out` outputs.
inline int64_t ColumnsPerThread(int64_t out, int64_t width, int threads) {
  return CeilDivide(CeilDivide(out, width), threads) * width;
}

// Returns the width of all panels except the last. Wide panels are faster, so it is the largest
// width for which short batches do not leave some threads with a third less work than others.
inline int64_t PanelWidth(int64_t out, int threads) {
  const int64_t panels = CeilDivide(out, kPanelWidth);
  const int64_t widest = RoundUp(CeilDivide(out, panels), kPanelWidthMultiple);
  int64_t best = widest;
  for (int64_t width = widest; width > 0; width -= kPanelWidthMultiple) {
    if (3 * ColumnsPerThread(out, width, threads) <= 2 * ColumnsPerThread(out, best, threads)) {
      best = width;
    }
  }
  return best;
}

// Rows of W in the number format of the products. Part p of row r is dense and starts at data + p *
// part_stride + r * row_stride.
struct WeightRows {
  const char* data;
  int64_t row_stride;
  int64_t part_stride;
};

// The weights of some adjacent columns of y. Does not own them.
struct Panel {
  int64_t begin;  // the first column
  const PanelKernels* kernels;
  // The packed weights of each block of the shape (PanelShape), and oneDNN's view of each. Panels
  // of other implementations do not have the views.
  std::vector<char*> blocks = {};
  std::vector<dnnl::memory> weights = {};
  dnnl::memory bias = {};

  // Sets the panel's memory: `packed` has bytes() bytes, aligned to 64, and `bias_of_columns` has
  // one float per column. Both must outlive the panel.
  void Place(char* packed, float* bias_of_columns);
  // Packs the weights of its columns. `rows` begins at its first row of W. Throws dnnl::error.
  void Pack(const WeightRows& rows);

  int64_t bytes() const { return kernels->shape.blocks() * kernels->block_bytes; }
};

// Immutable and thread-safe once packed. Owns the memory that its panels point to.
class PackedWeight {
 public:
  // Packs a weight; see PackedLinear::Pack.
  static absl::StatusOr<std::unique_ptr<const PackedWeight>> Pack(MatrixView<const float> weight,
                                                                  absl::Span<const float> bias,
                                                                  const ComputeMode& mode,
                                                                  const ThreadTeam& team,
                                                                  PageArena& arena);

  int64_t bytes() const { return weight_bytes_ + bias.bytes() + column_scales.bytes(); }

  ComputeMode mode;
  ProductPlan plan;
  int64_t panel_width = 0;             // columns of every panel except the last
  std::vector<Panel> panels;           // all except the last have the same kernels
  AlignedBuffer<float> bias;           // [out]
  AlignedBuffer<float> column_scales;  // [out], for int8

 private:
  const PanelKernels& KernelsOf(int64_t columns) const;
  // Chooses the properties that all panels share: the K block, the implementation, the width and
  // the weight type.
  absl::Status Choose(MatrixView<const float> weight, int threads);
  void Narrow(int64_t narrower);
  // Chooses the weight type. If oneDNN computes float32, the vector GEMM computes products of
  // 16-bit weights, with the bits of oneDNN if it can give them; if it cannot, kAuto keeps float32.
  void ChooseStoredType(MatrixView<const float> weight);
  bool HasProductsLikeOneDnn() const;
  // Returns the widths of the first and the last panel.
  std::array<int64_t, 2> EndWidths() const;
  void FindKernels();
  void LayOut(PageArena& arena);
  void PackPanels(MatrixView<const float> weight, const ThreadTeam& team);
  void PackPanel(MatrixView<const float> weight, Panel& panel);

  std::shared_ptr<char> weights_;
  int64_t weight_bytes_ = 0;
  bool like_onednn_ = false;  // see PanelShape
};

// Returns the first of `k_blocks` (at least one) for which is_clean returns true, or k_blocks[0] if
// there is none. Exposed for testing.
int64_t ChooseKBlock(absl::Span<const int64_t> k_blocks,
                     absl::FunctionRef<bool(int64_t k_block)> is_clean);

}  // namespace attendant
