// What a PackedLinear holds; for the files of this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/tile_kernel.h"

namespace attendant {

// Some neighbouring columns of the result.
struct Panel {
  int64_t begin;
  const PanelKernels* kernels;
  std::vector<dnnl::memory> weights;  // one for each block of the shape
  dnnl::memory bias;
};

class PackedLinear::Impl {
 public:
  static absl::StatusOr<std::unique_ptr<const Impl>> Pack(MatrixView<const float> weight,
                                                          absl::Span<const float> bias,
                                                          const ComputeMode& mode);

  int64_t bytes() const { return weights_.bytes() + bias.bytes() + column_scales.bytes(); }

  ComputeMode mode;
  int64_t in = 0;
  int64_t out = 0;
  int64_t k_block = 0;
  std::vector<Panel> panels;           // all but the last have the same kernels
  AlignedBuffer<float> bias;           // [out]
  AlignedBuffer<float> column_scales;  // [out], of int8

 private:
  absl::Status FindKernels();
  void LayOut();
  void PackPanel(MatrixView<const float> weight, Panel& panel);

  AlignedBuffer<char> weights_;
};

}  // namespace attendant
