#include "engine/layers/encoder.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/kernels/attention/relative_bias.h"
#include "engine/kernels/attention/relative_scores.h"
#include "engine/kernels/gemm/compute_support.h"
#include "engine/layers/encoder_impl.h"
#include "engine/layers/position_projections.h"
#include "engine/model/check_description.h"
#include "engine/model/load_plan.h"
#include "engine/model/pruned_heads.h"

namespace attendant {
namespace {

absl::Status LoadLayers(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  impl.layers.reserve(model.weight_sets());
  AlignedBuffer<float> distances;
  if (model.layer.relative_positions.kind == RelativePositions::kDisentangled) {
    absl::StatusOr<AlignedBuffer<float>> read = ReadDistanceTable(model.layer, loader);
    if (!read.ok()) return read.status();
    distances = *std::move(read);
  }
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    absl::StatusOr<EncoderLayer> layer =
        EncoderLayer::Load(absl::StrCat("layer.", i, "."), model.layer_shape(i), loader, distances);
    if (!layer.ok()) return layer.status();
    impl.layers.push_back(*std::move(layer));
  }
  return absl::OkStatus();
}

absl::Status LoadPoolings(const ModelDescription& model, WeightLoader& loader,
                          Encoder::Impl& impl) {
  const auto load = [&](const char* name, const std::optional<PoolingDescription>& pooling,
                        std::vector<PoolingDense>& layers) {
    if (!pooling) return absl::OkStatus();
    auto read = PoolingDense::LoadAll(name, *pooling, model.layer, loader);
    if (read.ok()) layers = std::move(*read);
    return read.status();
  };
  absl::Status status = load("pooling", model.pooling, impl.pooling_layers);
  if (status.ok()) status = load("classifier", model.classifier, impl.classifier_layers);
  return status;
}

absl::Status LoadAll(const ModelDescription& model, WeightLoader& loader, Encoder::Impl& impl) {
  const int64_t hidden_size = model.layer.hidden_size;
  if (model.embeddings) {
    absl::StatusOr<Embeddings> read = Embeddings::Load(*model.embeddings, model.layer, loader);
    if (!read.ok()) return read.status();
    impl.embeddings = *std::move(read);
  }
  if (model.patch_embedding) {
    absl::StatusOr<PatchEmbedding> read =
        PatchEmbedding::Load(*model.patch_embedding, model.layer, loader);
    if (!read.ok()) return read.status();
    impl.patch_embedding = *std::move(read);
  }
  if (const RelativePositionShape& shape = model.layer.relative_positions;
      shape.kind == RelativePositions::kBuckets) {
    absl::StatusOr<AlignedBuffer<float>> read =
        loader.ReadTable("relative_positions", shape.buckets * model.layer.attention.heads);
    if (!read.ok()) return read.status();
    impl.relative_positions = *std::move(read);
  }
  if (absl::Status status = LoadLayers(model, loader, impl); !status.ok()) return status;
  if (model.has_exit_norm) {
    absl::StatusOr<NormParameters> read = loader.ReadNorm(
        "exit_norm", hidden_size, model.layer.norms.kind, model.layer.norms.epsilon);
    if (!read.ok()) return read.status();
    impl.exit_norm = *std::move(read);
  }
  return LoadPoolings(model, loader, impl);
}

int64_t BytesToRead(const ModelDescription& model, const WeightSource& source) {
  int64_t elements = 0;
  for (const WeightSpec& spec : ListWeights(model)) {
    if (source.Has(spec.name)) elements += ElementCount(spec.shape).value_or(0);
  }
  return elements * static_cast<int64_t>(sizeof(float));
}

// An overlay must have the heads of its base, or the base must have all of its heads.
absl::Status CheckOverlay(const ModelDescription& base, const ModelDescription& overlay) {
  if (overlay == base) return absl::OkStatus();
  if (absl::Status status = CheckDescription(overlay); !status.ok()) return status;
  if (HasPrunedHeads(base)) {
    return absl::InvalidArgumentError(
        "overlay: expected a base with all of its heads to leave some out, got one that has been "
        "pruned");
  }
  if (WithAllHeads(overlay) == WithAllHeads(base)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "overlay: expected the description of its base, perhaps without some heads, got another "
      "model's");
}

}  // namespace

absl::StatusOr<int64_t> Encoder::PredictLoadBytes(const ModelDescription& description,
                                                  const ComputeMode& mode) {
  absl::Status status = CheckDescription(description);
  if (status.ok()) status = CheckComputeMode(mode);
  if (!status.ok()) return status;
  return LoadBytes(description, mode).value();
}

absl::StatusOr<std::shared_ptr<const Encoder>> Encoder::Load(
    const ModelDescription& description, WeightSource& weights,
    absl::FunctionRef<void(int64_t done, int64_t total)> progress, const ComputeMode& mode) {
  absl::Status status = CheckDescription(description);
  if (status.ok()) status = CheckComputeMode(mode);
  if (!status.ok()) return status;
  WeightLoader loader(weights, BytesToRead(description, weights), progress, mode);
  auto impl = std::make_unique<Impl>();
  impl->description = description;
  impl->mode = mode;
  status = LoadAll(description, loader, *impl);
  if (!status.ok()) return status;
  impl->own_bytes = impl->bytes();
  impl->product_plans = loader.product_plans();
  return std::shared_ptr<const Encoder>(new Encoder(std::move(impl)));
}

absl::StatusOr<int64_t> Encoder::PredictOverlayBytes(const ModelDescription& description,
                                                     const ComputeMode& mode) {
  absl::Status status = CheckDescription(description);
  if (status.ok()) status = CheckComputeMode(mode);
  if (!status.ok()) return status;
  return PrunedAttentionBytes(description, mode).value();
}

absl::StatusOr<std::shared_ptr<const Encoder>> Encoder::LoadOverlay(const Encoder& base,
                                                                    WeightSource& norms) {
  return LoadOverlay(base, base.description(), norms);
}

absl::StatusOr<std::shared_ptr<const Encoder>> Encoder::LoadOverlay(
    const Encoder& base, const ModelDescription& description, WeightSource& weights) {
  if (absl::Status status = CheckOverlay(base.description(), description); !status.ok()) {
    return status;
  }
  auto impl = std::make_unique<Impl>(base.impl());
  const auto no_progress = [](int64_t, int64_t) {};
  WeightLoader loader(weights, BytesToRead(description, weights), no_progress, base.mode());
  const absl::StatusOr<int64_t> attention_bytes = impl->ReplaceAttention(description, loader);
  if (!attention_bytes.ok()) return attention_bytes.status();
  const int64_t read = loader.bytes_read();
  if (absl::Status status = impl->ReplaceNorms(loader); !status.ok()) return status;
  impl->own_bytes = *attention_bytes + loader.bytes_read() - read;
  AddProductPlans(loader.product_plans(), impl->product_plans);
  return std::shared_ptr<const Encoder>(new Encoder(std::move(impl)));
}

Encoder::Encoder(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Encoder::~Encoder() = default;

const ModelDescription& Encoder::description() const { return impl_->description; }
const ComputeMode& Encoder::mode() const { return impl_->mode; }
int64_t Encoder::weight_bytes() const { return impl_->own_bytes; }
const std::vector<ProductPlan>& Encoder::product_plans() const { return impl_->product_plans; }

void Encoder::Impl::ReserveScratch(RunState& run) const {
  if (embeddings) embeddings->ReserveScratch(run);
  if (patch_embedding) patch_embedding->ReserveScratch(run);
  for (const EncoderLayer& layer : layers) layer.ReserveScratch(run);
}

void Encoder::Impl::FillDistances(RunState& run) const {
  const RelativePositionShape& shape = description.layer.relative_positions;
  if (shape.kind == RelativePositions::kDisentangled) {
    FillDistanceRows(shape.buckets, shape.max_distance, absl::MakeSpan(run.distance_rows));
  }
  if (shape.kind == RelativePositions::kAlibi) FillAlibi(run.distance_table());
  if (shape.kind != RelativePositions::kBuckets) return;
  const int64_t heads = description.layer.attention.heads;
  FillBucketBias({relative_positions.data(), shape.buckets, heads, heads}, shape.max_distance,
                 run.distance_table());
}

absl::StatusOr<int64_t> Encoder::Impl::ReplaceAttention(const ModelDescription& pruned,
                                                        WeightLoader& loader) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < pruned.weight_sets(); ++i) {
    const LayerShape shape = pruned.layer_shape(i);
    if (shape == description.layer_shape(i)) continue;
    const absl::Status status =
        layers[i].ReplaceAttention(absl::StrCat("layer.", i, "."), shape, loader);
    if (!status.ok()) return status;
    bytes += layers[i].attention_bytes();
  }
  description = pruned;
  return bytes;
}

absl::Status Encoder::Impl::ReplaceNorms(WeightLoader& loader) {
  absl::Status status;
  if (loader.Has("relative_positions_norm.weight") || loader.Has("relative_positions_norm.bias")) {
    return absl::InvalidArgumentError(
        "relative_positions_norm: expected none over a loaded model, whose projections of "
        "distances "
        "it would change");
  }
  const auto replace = [&](auto& part) {
    if (status.ok()) status = part.ReplaceNorms(loader);
  };
  if (embeddings) replace(*embeddings);
  if (patch_embedding) replace(*patch_embedding);
  for (EncoderLayer& layer : layers) replace(layer);
  for (PoolingDense& dense : pooling_layers) replace(dense);
  for (PoolingDense& dense : classifier_layers) replace(dense);
  if (status.ok()) status = loader.ReplaceNorm(exit_norm);
  return status;
}

int64_t Encoder::Impl::bytes() const {
  int64_t sum = (embeddings ? embeddings->bytes() : 0) +
                (patch_embedding ? patch_embedding->bytes() : 0) + relative_positions.bytes();
  for (const EncoderLayer& layer : layers) sum += layer.bytes();
  if (exit_norm) sum += exit_norm->bytes();
  for (const PoolingDense& dense : pooling_layers) sum += dense.bytes();
  for (const PoolingDense& dense : classifier_layers) sum += dense.bytes();
  return sum;
}

}  // namespace attendant
