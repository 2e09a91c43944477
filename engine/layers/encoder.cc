#include "engine/layers/encoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/gemm/compute_support.h"
#include "engine/layers/encoder_impl.h"
#include "engine/layers/extras/attention_extra.h"
#include "engine/layers/pooling.h"
#include "engine/model/check_description.h"
#include "engine/model/load_plan.h"
#include "engine/model/pruned_heads.h"

namespace attendant {
namespace {

absl::Status LoadLayers(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  impl.layers.reserve(model.weight_sets());
  AlignedBuffer<float> distances;
  if (model.layer.relative_positions.kind == RelativePositions::kDisentangled) {
    distances = ReadDistanceTable(model.layer, loader);
  }
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    RETURN_IF_ERROR(loader.status());
    impl.layers.emplace_back(absl::StrCat("layer.", i, "."), model.layer_shape(i), loader,
                             distances);
  }
  return loader.status();
}

absl::Status LoadHeads(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  impl.heads.emplace_back(model.layer.layer_width());
  for (const DenseHeadShape& head : model.dense_heads()) {
    if (head.shape->attends()) impl.attention_pooling.emplace(Name(head.kind), model.layer, loader);
    RETURN_IF_ERROR(loader.status());
    impl.heads.emplace_back(head, model.layer, loader);
    RETURN_IF_ERROR(loader.status());
  }
  if (model.vocabulary_head) impl.vocabulary_head.emplace(model, loader);
  return loader.status();
}

// Stops at the first error of the loader, and returns it.
absl::Status LoadAll(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  const LayerShape& layer = model.layer;
  if (model.embeddings) impl.embeddings.emplace(*model.embeddings, layer, loader);
  RETURN_IF_ERROR(loader.status());
  if (model.patch_embedding) impl.patch_embedding.emplace(*model.patch_embedding, layer, loader);
  RETURN_IF_ERROR(loader.status());
  if (const RelativePositionShape& shape = layer.relative_positions;
      shape.kind == RelativePositions::kBuckets) {
    impl.relative_positions =
        loader.Keep(loader.ReadTable("relative_positions", shape.buckets * layer.attention.heads));
    RETURN_IF_ERROR(loader.status());
  }
  RETURN_IF_ERROR(LoadLayers(model, loader, impl));
  if (model.has_exit_norm) {
    impl.exit_norm = loader.AddNorm("exit_norm", layer.hidden_size, layer.norms);
    RETURN_IF_ERROR(loader.status());
  }
  return LoadHeads(model, loader, impl);
}

int64_t BytesToRead(const ModelDescription& model, const WeightSource& source) {
  int64_t elements = 0;
  for (const WeightSpec& spec : ListWeights(model)) {
    if (source.Has(spec.name)) elements += ElementCount(spec.shape).value_or(0);
  }
  return elements * static_cast<int64_t>(sizeof(float));
}

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
// description. Stops at the first error of the loader, and returns it.
absl::Status ReplaceAttention(const ModelDescription& pruned, WeightLoader& loader,
                              Encoder::Impl& impl) {
  for (int64_t i = 0; i < pruned.weight_sets(); ++i) {
    const LayerShape& shape = pruned.layer_shape(i);
    if (shape == impl.description.layer_shape(i)) continue;
    impl.layers[i].ReplaceAttention(absl::StrCat("layer.", i, "."), shape, loader);
    RETURN_IF_ERROR(loader.status());
  }
  impl.description = pruned;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> Encoder::PredictLoadBytes(const ModelDescription& description,
                                                  const ComputeMode& mode) {
  RETURN_IF_ERROR(CheckDescription(description));
  RETURN_IF_ERROR(CheckComputeMode(mode));
  return LoadBytes(description, mode).value();
}

absl::StatusOr<std::shared_ptr<const Encoder>> Encoder::Load(
    const ModelDescription& description, WeightSource& weights,
    absl::FunctionRef<void(int64_t done, int64_t total)> progress, const ComputeMode& mode,
    int threads) {
  RETURN_IF_ERROR(CheckDescription(description));
  RETURN_IF_ERROR(CheckComputeMode(mode));
  WeightLoader loader(weights, BytesToRead(description, weights), progress, mode, threads);
  auto impl = std::make_unique<Impl>();
  impl->description = description;
  impl->mode = mode;
  RETURN_IF_ERROR(LoadAll(description, loader, *impl));
  impl->Take(loader);
  return std::shared_ptr<const Encoder>(new Encoder(std::move(impl)));
}

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
  RETURN_IF_ERROR(ReplaceAttention(description, loader, *impl));
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

Encoder::Encoder(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Encoder::~Encoder() = default;

const ModelDescription& Encoder::description() const { return impl_->description; }
const ComputeMode& Encoder::mode() const { return impl_->mode; }
int64_t Encoder::weight_bytes() const { return impl_->own_bytes; }
const std::vector<ProductPlan>& Encoder::product_plans() const { return impl_->product_plans; }

void Encoder::Pool(HeadKind head, MatrixView<const float> hidden_states,
                   absl::Span<const int32_t> positions, absl::Span<float> target) const {
  if (head == HeadKind::kPooling && impl_->attention_pooling && hidden_states.rows > 0) {
    return impl_->attention_pooling->Pool(hidden_states, target);
  }
  const ModelDescription& model = impl_->description;
  const PoolingDescription& shape =
      head == HeadKind::kClassifier ? *model.classifier : *model.pooling;
  attendant::Pool(shape.modes, hidden_states, positions, target,
                  model.patch_embedding ? model.patch_embedding->prefix_tokens() : 0);
}

void Encoder::Impl::Take(WeightLoader& loader) {
  norms = std::move(loader.norms());
  own_bytes = loader.kept_bytes();
  const std::vector<ProductUse>& uses = loader.product_uses();
  product_uses.insert(product_uses.end(), uses.begin(), uses.end());
  AddProductPlans(loader.product_plans(), product_plans);
}

const DenseHead& Encoder::Impl::head(HeadKind kind) const {
  return *std::find_if(heads.begin(), heads.end(),
                       [&](const DenseHead& head) { return head.kind() == kind; });
}

}  // namespace attendant
