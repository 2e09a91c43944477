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

namespace attendant {
namespace {

void LoadLayers(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  impl.layers.reserve(model.weight_sets());
  AlignedBuffer<float> distances;
  if (model.layer.relative_positions.kind == RelativePositions::kDisentangled) {
    distances = ReadDistanceTable(model.layer, loader);
  }
  for (int64_t i = 0; i < model.weight_sets() && loader.status().ok(); ++i) {
    impl.layers.emplace_back(absl::StrCat("layer.", i, "."), model.layer_shape(i), loader,
                             distances);
  }
}

void LoadHeads(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  impl.heads.emplace_back(model.layer.layer_width());
  for (const DenseHeadShape& head : model.dense_heads()) {
    if (head.shape->attends()) impl.attention_pooling.emplace(Name(head.kind), model.layer, loader);
    impl.heads.emplace_back(head, model.layer, loader);
  }
  if (model.vocabulary_head) impl.vocabulary_head.emplace(model, loader);
}

void LoadAll(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  const LayerShape& layer = model.layer;
  if (model.embeddings) impl.embeddings.emplace(*model.embeddings, layer, loader);
  if (model.patch_embedding) impl.patch_embedding.emplace(*model.patch_embedding, layer, loader);
  if (const RelativePositionShape& shape = layer.relative_positions;
      shape.kind == RelativePositions::kBuckets) {
    impl.relative_positions =
        loader.Keep(loader.ReadTable("relative_positions", shape.buckets * layer.attention.heads));
  }
  LoadLayers(model, loader, impl);
  if (model.has_exit_norm) {
    impl.exit_norm = loader.AddNorm("exit_norm", layer.hidden_size, layer.norms);
  }
  LoadHeads(model, loader, impl);
}

int64_t BytesToRead(const ModelDescription& model, const WeightSource& source) {
  int64_t elements = 0;
  for (const WeightSpec& spec : ListWeights(model)) {
    if (source.Has(spec.name)) elements += ElementCount(spec.shape).value_or(0);
  }
  return elements * static_cast<int64_t>(sizeof(float));
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
  LoadAll(description, loader, *impl);
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
