// Bottleneck: the linear layers with norms around the blocks of a layer that works at another width
// than its input: Sun et al. 2020 (MobileBERT), section 3.1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/layers/extras/layer_extra.h"
#include "engine/model/model_description.h"

namespace attendant {

// x = norm(x + out(blocks(norm(in(x))))).
class Bottleneck : public LayerExtra {
 public:
  // Reads the linear layers before the blocks. LoadOut reads the one behind them, whose weights
  // come later in a checkpoint. Errors of `loader`.
  static absl::StatusOr<Bottleneck> Load(const std::string& prefix, const LayerShape& shape,
                                         WeightLoader& loader);
  absl::Status LoadOut(const std::string& prefix, const LayerShape& shape, WeightLoader& loader);

  BlockRows Enter(MatrixView<float> x, bool is_whole, const LayerRun& run) const override;
  void KeepRows(absl::Span<const int32_t> rows, MatrixView<float> x,
                const LayerRun& run) const override;
  MatrixView<float> Leave(MatrixView<float> x, const PreparedRows& inside,
                          const LayerRun& run) const override;
  const PackedLinear* exit() const override { return &out_->linear; }
  void VisitNorms(absl::FunctionRef<void(NormParameters&)> visit) override;
  std::unique_ptr<LayerExtra> Clone() const override { return std::make_unique<Bottleneck>(*this); }
  void ReserveScratch(Workspace& workspace) const override;
  int64_t bytes() const override;

 private:
  // A linear layer and the norm after it.
  struct NormedLinear {
    static absl::StatusOr<NormedLinear> Load(const std::string& name, int64_t out, int64_t in,
                                             const LayerShape& shape, WeightLoader& loader);
    // Computes norm(x W^T + b) in `target`, which is one of the run's buffers.
    MatrixView<float> Apply(MatrixView<const float> x, MatrixView<float> target,
                            const LayerRun& run) const;
    int64_t bytes() const { return linear.bytes() + norm.bytes(); }

    PackedLinear linear;
    NormParameters norm;
  };

  explicit Bottleneck(NormedLinear in) : in_(std::move(in)) {}

  NormedLinear in_;
  std::optional<NormedLinear> attention_;  // makes queries and keys; values come from outside
  std::optional<NormedLinear> out_;        // set by LoadOut
};

}  // namespace attendant
