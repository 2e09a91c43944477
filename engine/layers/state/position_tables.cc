#include "engine/layers/state/position_tables.h"

#include "absl/algorithm/container.h"
#include "engine/kernels/attention/relative_positions.h"

namespace attendant {
namespace {

// Returns the distinct rotations of the model's layers.
std::vector<RotaryShape> Rotations(const ModelDescription& model) {
  std::vector<RotaryShape> rotations;
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    const RelativePositionShape relative = model.layer_shape(i).relative_positions;
    if (relative.kind != RelativePositions::kRotary) continue;
    if (!absl::c_linear_search(rotations, relative.rotary)) rotations.push_back(relative.rotary);
  }
  return rotations;
}

CheckedSize DistanceElements(const LayerShape& layer, int64_t max_tokens) {
  if (layer.relative_positions.position_rows() > 0) return CheckedSize(2) * max_tokens;
  if (!layer.relative_positions.adds_to_scores()) return 0;
  return CheckedSize(layer.attention.heads) * (CheckedSize(2) * max_tokens);
}

CheckedSize RotaryElements(const ModelDescription& model, int64_t max_tokens) {
  CheckedSize sum;
  for (const RotaryShape& shape : Rotations(model)) {
    sum = sum + CheckedSize(shape.width()) * max_tokens;
  }
  return sum;
}

}  // namespace

PositionTables::PositionTables(const ModelDescription& model, int64_t max_tokens,
                               const SharedBuffer<float>& bucket_bias)
    : max_tokens_(max_tokens) {
  const RelativePositionShape& relative = model.layer.relative_positions;
  const int64_t heads = model.layer.attention.heads;
  if (relative.kind == RelativePositions::kDisentangled) {
    distance_rows_.resize(DistanceColumns(max_tokens));
    FillDistanceRows(relative.buckets, relative.max_distance, absl::MakeSpan(distance_rows_));
  }
  if (relative.adds_to_scores()) {
    distance_bias_ = AlignedBuffer<float>(DistanceElements(model.layer, max_tokens).value());
    const MatrixView<float> table = {distance_bias_.data(), heads, DistanceColumns(max_tokens),
                                     2 * max_tokens};
    if (relative.kind == RelativePositions::kAlibi) FillAlibi(table);
    if (relative.kind == RelativePositions::kBuckets) {
      FillBucketBias({bucket_bias.data(), relative.buckets, heads, heads}, relative.max_distance,
                     table);
    }
    distances_ = AsAttentionBias(table);
  }
  for (const RotaryShape& shape : Rotations(model)) rotary_.emplace_back(max_tokens, shape);
}

CheckedSize PositionTables::Bytes(const ModelDescription& model, int64_t max_tokens) {
  return (DistanceElements(model.layer, max_tokens) + RotaryElements(model, max_tokens)) *
         CheckedSize(sizeof(float));
}

int64_t PositionTables::bytes() const {
  int64_t sum = distance_bias_.bytes() +
                static_cast<int64_t>(distance_rows_.size() * sizeof(distance_rows_.front()));
  for (const RotaryTable& table : rotary_) sum += table.bytes();
  return sum;
}

RelativeScores PositionTables::WithDistanceRows(RelativeScores projections) const {
  projections.row_of = distance_rows_.data();
  projections.middle = max_tokens_ - 1;
  return projections;
}

const RotaryTable& PositionTables::rotary(const RotaryShape& shape) const {
  return *absl::c_find_if(rotary_,
                          [&](const RotaryTable& table) { return table.shape() == shape; });
}

std::shared_ptr<const PositionTables> SharedPositionTables::Find(
    const ModelDescription& model, int64_t max_tokens, const SharedBuffer<float>& bucket_bias) {
  const absl::MutexLock lock(&mutex_);
  std::weak_ptr<const PositionTables>& known = by_tokens_[max_tokens];
  std::shared_ptr<const PositionTables> tables = known.lock();
  if (tables != nullptr) return tables;
  tables = std::make_shared<const PositionTables>(model, max_tokens, bucket_bias);
  known = tables;
  return tables;
}

}  // namespace attendant
