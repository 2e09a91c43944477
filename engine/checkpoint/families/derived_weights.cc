#include "engine/checkpoint/families/derived_weights.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/sinusoids.h"

namespace attendant {
namespace {

constexpr char kPositions[] = "embeddings.position";
constexpr char kRotaryFrequencies[] = "rotary_frequencies";
constexpr char kScale[] = "similarity.scale", kBias[] = "similarity.bias";  // [1]

// Every patch of an image has its position.
void CheckGrid(const ModelDescription& model, WeightBinder& binder) {
  if (!model.patch_embedding || model.patch_embedding->patch_size == 0) return;
  const int64_t grid = model.patch_embedding->grid();
  if (model.patch_embedding->features() == grid * grid) return;
  binder.Refuse("expected a table of ", grid * grid + model.patch_embedding->prefix_positions(),
                " positions for the patches of an image",
                model.patch_embedding->has_class ? " and the class token" : "", "; got ",
                model.patch_embedding->positions);
}

void AddSinusoids(const Family& family, Checkpoint& checkpoint) {
  if (family.sinusoids == Sinusoids::kNone || checkpoint.weights->Has(kPositions)) return;
  EmbeddingShape& embeddings = *checkpoint.description.embeddings;
  embeddings.table_type = DataType::kFloat32;  // sinusoids are not rounded to the type of the file
  SinusoidTable table = {.kind = family.sinusoids,
                         .positions = embeddings.positions,
                         .width = embeddings.added_width(checkpoint.description.layer.hidden_size)};
  if (embeddings.position_rule == PositionRule::kCountNotPadding) {
    table.zero_row = embeddings.padding_id();
  }
  checkpoint.weights = WithSinusoids(kPositions, table, std::move(checkpoint.weights));
}

}  // namespace

const FileTensor* FamilyTensors::Find(const std::string& canonical) const {
  for (const TensorPart& place : Places(canonical)) {
    if (const FileTensor* tensor = binder.Find(place.name); tensor != nullptr) return tensor;
  }
  return nullptr;
}

std::optional<PatchEmbeddingShape> DescribePatchEmbedding(const FamilyTensors& tensors,
                                                          const ModelDescription& model) {
  const auto rows_of = [&](const std::string& name) -> int64_t {
    const FileTensor* tensor = tensors.Find(name);
    if (tensor == nullptr || tensor->shape.empty()) return 0;
    return tensor->shape.size() == 1 ? 1 : tensor->shape[tensor->shape.size() - 2];
  };
  PatchEmbeddingShape patch_embedding = model.patch_embedding.value_or(PatchEmbeddingShape());
  patch_embedding.has_class = rows_of("front.class") > 0;
  patch_embedding.has_distillation = rows_of("front.distillation") > 0;
  patch_embedding.registers = rows_of("front.registers");
  patch_embedding.positions = rows_of("front.positions");
  patch_embedding.needs_every = tensors.family.patches_are_grid;
  patch_embedding.has_norm =
      (model.layer.norms.placement == NormPlacement::kPost || tensors.family.norms_patches) &&
      tensors.Has("front.norm.weight");
  const bool has_any = patch_embedding.prefix_tokens() > 0 || patch_embedding.positions > 0 ||
                       patch_embedding.has_norm;
  const bool is_too_small = patch_embedding.positions > 0 && patch_embedding.features() < 1;
  if (!has_any || is_too_small) return std::nullopt;
  return patch_embedding;
}

std::vector<int64_t> ShapeInFiles(const WeightSpec& spec, const ModelDescription& model,
                                  const FileTensor* tensor) {
  const int64_t patch = model.patch_embedding ? model.patch_embedding->patch_size : 0;
  const int64_t width = model.layer.hidden_size;
  if (spec.name == "front.projection.weight" && patch > 0) return {width, 3, patch, patch};
  if (spec.name == "front.class" && tensor != nullptr && tensor->shape.size() == 1) return {width};
  return spec.shape;
}

void BindWeight(const WeightSpec& spec, std::vector<TensorPart> places, const LayerShape& layer,
                WeightBinder& binder) {
  for (TensorPart& place : places) {
    if (place.unit == RowUnit::kExpert) place.rows.count = layer.feed_forward.mixture.experts;
  }
  const auto found = absl::c_find_if(
      places, [&](const TensorPart& place) { return binder.Find(place.name) != nullptr; });
  if (found == places.end() || found->unit != RowUnit::kHead) return binder.Bind(spec, places);
  std::vector<TensorPart> of_heads(layer.attention.heads, *found);
  for (int64_t head = 0; head < layer.attention.heads; ++head) {
    RowPart& rows = of_heads[head].rows;
    rows.index += head * rows.count;
    rows.count *= layer.attention.heads;
  }
  binder.BindStacked(spec, of_heads);
}

bool IsDerived(const Family& family, const std::string& name) {
  return name == kPositions && family.sinusoids != Sinusoids::kNone;
}

void BindDerivedWeights(const FamilyTensors& tensors, const ModelDescription& model) {
  WeightBinder& binder = tensors.binder;
  CheckGrid(model, binder);
  for (const char* number : {kScale, kBias}) {
    binder.Bind({number, {1}, /*optional=*/true}, tensors.Places(number));
  }
  const std::vector<TensorPart> frequencies = tensors.Places(kRotaryFrequencies);
  if (frequencies.empty()) return;
  const RotaryShape& rotary = model.layer.relative_positions.rotary;
  binder.Bind({kRotaryFrequencies, {rotary.width() / 2}, /*optional=*/true}, frequencies);
}

namespace {

absl::Status ReadSimilarity(Checkpoint& checkpoint) {
  if (!checkpoint.weights->Has(kScale)) return absl::OkStatus();
  SimilarityShape similarity;
  RETURN_IF_ERROR(checkpoint.weights->Read(kScale, absl::MakeSpan(&similarity.scale, 1)));
  if (checkpoint.weights->Has(kBias)) {
    RETURN_IF_ERROR(checkpoint.weights->Read(kBias, absl::MakeSpan(&similarity.bias, 1)));
  }
  similarity.scale = std::exp(similarity.scale);
  checkpoint.description.similarity = similarity;
  return absl::OkStatus();
}

}  // namespace

absl::Status AddDerivedWeights(const Family& family, Checkpoint& checkpoint) {
  AddSinusoids(family, checkpoint);
  RETURN_IF_ERROR(ReadSimilarity(checkpoint));
  if (!checkpoint.weights->Has(kRotaryFrequencies)) return absl::OkStatus();
  ModelDescription& model = checkpoint.description;
  std::vector<float> read(model.layer.relative_positions.rotary.frequencies.size());
  RETURN_IF_ERROR(checkpoint.weights->Read(kRotaryFrequencies, absl::MakeSpan(read)));
  model.ChangeShapes([&](LayerShape& layer) {
    layer.relative_positions.rotary.frequencies.assign(read.begin(), read.end());
  });
  return absl::OkStatus();
}

}  // namespace attendant
