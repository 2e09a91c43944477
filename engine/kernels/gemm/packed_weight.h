// PackedWeight: the weight of a linear layer, split into panels of columns in the layout that its
// matrix products read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/page_arena.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/panel.h"
#include "engine/kernels/gemm/product_plan.h"

namespace attendant {

// Immutable and thread-safe once PackedLinear::Pack has filled it in. Owns the memory that its
// panels point to.
class PackedWeight {
 public:
  int64_t bytes() const { return weight_bytes_ + bias.bytes() + column_scales.bytes(); }

  ComputeMode mode;
  ProductPlan plan;
  int64_t panel_width = 0;             // columns of every panel except the last
  std::vector<Panel> panels;           // all except the last have the same kernels
  AlignedBuffer<float> bias;           // [out]
  AlignedBuffer<float> column_scales;  // [out], for int8

 private:
  friend class PackedLinear;

  const PanelKernels& KernelsOf(int64_t columns) const;
  // Chooses the properties that all panels share: the implementation, the width and the weight
  // type.
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
