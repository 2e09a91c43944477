// Overlays: models that share the weights of a loaded model, except for its norms and, if heads are
// pruned, the attention of some layers.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/gemm/compute_support.h"
#include "engine/layers/encoder.h"
#include "engine/layers/encoder_impl.h"
#include "engine/model/check_description.h"
#include "engine/model/load_plan.h"
#include "engine/model/pruned_heads.h"

namespace attendant {
namespace {

// An overlay may prune heads only if the base has all heads.
absl::Status CheckOverlay(const ModelDescription& base, const ModelDescription& overlay) {
  if (overlay == base) return absl::OkStatus();
  RETURN_IF_ERROR(CheckDescription(overlay));
  if (HasPrunedHeads(base)) {
    return absl::InvalidArgumentError(
        "overlay: expected the base's own description (its heads are pruned); got a different "
        "description; load the base without pruned heads");
  }
  if (WithAllHeads(overlay) == WithAllHeads(base)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "overlay: expected the base's description, which may differ only in pruned heads; got a "
      "different description");
}

// Replaces the attention of the layers that have fewer heads in `pruned`, which becomes the
// description.
void ReplaceAttention(const ModelDescription& pruned, WeightLoader& loader, Encoder::Impl& impl) {
  for (int64_t i = 0; i < pruned.weight_sets(); ++i) {
    const LayerShape& shape = pruned.layer_shape(i);
    if (shape == impl.description.layer_shape(i)) continue;
    impl.layers[i].ReplaceAttention(absl::StrCat("layer.", i, "."), shape, loader);
  }
  impl.description = pruned;
}

}  // namespace

absl::StatusOr<int64_t> Encoder::PredictOverlayBytes(const ModelDescription& description,
                                                     const ComputeMode& mode) {
  RETURN_IF_ERROR(CheckDescription(description));
  RETURN_IF_ERROR(CheckComputeMode(mode));
  return PrunedAttentionBytes(description, mode).value();
}

absl::StatusOr<std::shared_ptr<const Encoder>> Encoder::LoadOverlay(
    const Encoder& base, const ModelDescription& description, WeightSource& weights) {
  RETURN_IF_ERROR(CheckOverlay(base.description(), description));
  auto impl = std::make_unique<Impl>(base.impl());
  const auto no_progress = [](int64_t, int64_t) {};
  WeightLoader loader(weights, /*total_bytes=*/0, no_progress, base.mode());
  loader.norms() = impl->norms;
  ReplaceAttention(description, loader, *impl);
  RETURN_IF_ERROR(loader.status());
  if (loader.Has("relative_positions_norm.weight") || loader.Has("relative_positions_norm.bias")) {
    return absl::InvalidArgumentError(
        "relative_positions_norm: not supported in an overlay: the base's relative position "
        "projections depend on this norm");
  }
  loader.ReplaceNorms();
  RETURN_IF_ERROR(loader.status());
  impl->Take(loader);
  return std::shared_ptr<const Encoder>(new Encoder(std::move(impl)));
}

}  // namespace attendant
