// TokenConvolution: a convolution along the tokens of each sequence, whose result is added to that
// of the layer: the first layer of DeBERTa-v2.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/extras/layer_extra.h"
#include "engine/model/model_description.h"

namespace attendant {

// y = norm(blocks(x) + convolution(x)), where convolution(x) for the token at position p of its
// padded sequence is activation(sum over t of W_t x[p + t - taps / 2] + b), and x is zero where the
// sequence has no token. A row of the result depends on its sequence alone.
class TokenConvolution : public LayerExtra {
 public:
  // The shape of the layer must have a convolution. Errors of `loader`.
  static absl::StatusOr<TokenConvolution> Load(const std::string& prefix, const LayerShape& shape,
                                               WeightLoader& loader);

  // The first computes the convolution, for the whole layer alone, and the last adds it.
  BlockRows Enter(MatrixView<float> x, bool is_whole, const LayerRun& run) const override;
  void KeepRows(absl::Span<const int32_t> rows, MatrixView<float> x,
                const LayerRun& run) const override;
  MatrixView<float> Leave(MatrixView<float> x, const PreparedRows& inside,
                          const LayerRun& run) const override;
  const PackedLinear* exit() const override { return nullptr; }
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) override { visit(norm_); }
  std::unique_ptr<LayerExtra> Clone() const override {
    return std::make_unique<TokenConvolution>(*this);
  }
  void ReserveScratch(Workspace& workspace) const override;
  int64_t bytes() const override;

 private:
  TokenConvolution(const LayerShape& shape, NormParameters norm)
      : shape_(shape.extras.convolution), width_(shape.hidden_size), norm_(std::move(norm)) {}

  absl::Status LoadGroups(const std::string& name, WeightLoader& loader);

  // Gathers the input of the rows [first, first + taps.rows) of the result: for each group, its
  // columns of every tap, side by side. Rows beyond T get zeros.
  void Gather(MatrixView<const float> x, int64_t first, MatrixView<float> taps,
              const LayerRun& run) const;
  void GatherRow(MatrixView<const float> x, const AttentionSequence& sequence, int64_t row,
                 float* taps) const;

  ConvolutionShape shape_;
  int64_t width_;                     // E
  std::vector<PackedLinear> groups_;  // each [E / groups, taps * E / groups]
  NormParameters norm_;
};

}  // namespace attendant
