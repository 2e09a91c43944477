// What a PackedLinear holds; for the files of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/gemm/gemm_choice.h"
#include "engine/kernels/gemm/tile_kernel.h"

namespace attendant {

// Some neighbouring columns of the result.
struct Panel {
  int64_t begin;
  const PanelKernels* kernels;
  // Of each block of the shape; the memories are oneDNN's view of them, none of our own products.
  std::vector<char*> blocks = {};
  std::vector<dnnl::memory> weights = {};
  dnnl::memory bias = {};
};

class PackedLinear::Impl {
 public:
  static absl::StatusOr<std::unique_ptr<const Impl>> Pack(MatrixView<const float> weight,
                                                          absl::Span<const float> bias,
                                                          const ComputeMode& mode);

  int64_t bytes() const { return weights_.bytes() + bias.bytes() + column_scales.bytes(); }
  ProductPlan plan() const;

  ComputeMode mode;
  int64_t in = 0;
  int64_t out = 0;
  int64_t k_block = 0;
  GemmChoice choice;                   // whose products
  std::vector<Panel> panels;           // all but the last have the same kernels
  AlignedBuffer<float> bias;           // [out]
  AlignedBuffer<float> column_scales;  // [out], of int8

 private:
  absl::StatusOr<const PanelKernels*> KernelsOf(int64_t columns, int64_t block) const;
  // Chooses the K block, which all panels share, and whose products.
  absl::Status Choose();
  absl::Status FindKernels();
  void LayOut();
  void PackPanel(MatrixView<const float> weight, Panel& panel);

  AlignedBuffer<char> weights_;
};

}  // namespace attendant
