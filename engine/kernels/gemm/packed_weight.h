// PackedWeight: the weight of a linear layer, cut into panels of columns in the layout that the
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
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/gemm_choice.h"
#include "engine/kernels/gemm/panel.h"
#include "engine/kernels/gemm/product_plan.h"

namespace attendant {

// Immutable and thread-safe once packed. It owns the memory that its panels point to.
class PackedWeight {
 public:
  // Packs a weight; see PackedLinear::Pack. INTERNAL too if oneDNN throws.
  static absl::StatusOr<std::unique_ptr<const PackedWeight>> Pack(MatrixView<const float> weight,
                                                                  absl::Span<const float> bias,
                                                                  const ComputeMode& mode,
                                                                  const ThreadTeam& team,
                                                                  PageArena& arena);

  int64_t bytes() const { return weight_bytes_ + bias.bytes() + column_scales.bytes(); }
  ProductPlan plan() const;

  ComputeMode mode;
  int64_t in = 0;
  int64_t out = 0;
  int64_t k_block = 0;                   // columns of x that one product takes
  int64_t panel_width = 0;               // columns of all panels but the last
  GemmChoice choice;                     // of the matrix products
  WeightType stored = WeightType::kF32;  // see PanelShape
  std::vector<Panel> panels;             // all but the last have the same kernels
  AlignedBuffer<float> bias;             // [out]
  AlignedBuffer<float> column_scales;    // [out], for int8

 private:
  absl::StatusOr<const PanelKernels*> KernelsOf(int64_t columns) const;
  // Chooses what all panels share: the K block, the implementation, the width, and the type in
  // which the weights are kept.
  absl::Status Choose(MatrixView<const float> weight, int threads);
  absl::Status Narrow(int64_t narrower);
  // Chooses the type in which the weights are kept. Where oneDNN serves float32, the vector GEMM
  // serves 16 bits, with oneDNN's bits if it can have them; if it cannot, kAuto keeps float32.
  absl::Status ChooseStoredType(MatrixView<const float> weight);
  absl::StatusOr<bool> HasProductsLikeOneDnn() const;
  // The widths of the first and the last panel.
  std::array<int64_t, 2> EndWidths() const;
  absl::Status FindKernels();
  void LayOut(PageArena& arena);
  void PackPanels(MatrixView<const float> weight, const ThreadTeam& team);
  void PackPanel(MatrixView<const float> weight, Panel& panel);

  std::shared_ptr<char> weights_;
  int64_t weight_bytes_ = 0;
  bool like_onednn_ = false;  // see PanelShape
};

// Returns the columns of x that one product takes: the same for all weights of that mode and that
// many inputs, so that what makes x needs no weight to know the layout. It is the first of a few
// divisors of `in` with which all row tiles of a whole panel agree; where those of a narrower panel
// do not, that panel keeps the tiles that agree. The first call makes kernels and checks them.
// Thread-safe. INTERNAL if oneDNN refuses.
absl::StatusOr<int64_t> FindKBlock(const ComputeMode& mode, int64_t in);

// Returns the first of `k_blocks` (at least one) for which is_clean returns true, or else the first
// of all. Errors are those of `is_clean`. Exposed for its test.
absl::StatusOr<int64_t> ChooseKBlock(
    absl::Span<const int64_t> k_blocks,
    absl::FunctionRef<absl::StatusOr<bool>(int64_t k_block)> is_clean);

}  // namespace attendant
