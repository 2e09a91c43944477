#include "server/describe/query_key_ranks.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/model/layer_parts.h"
#include "proto/singular_values.h"

namespace attendant::server {
namespace {

constexpr double kShare = 0.9;

// The weight of a projection [rows, cols].
struct Projection {
  int64_t rows;
  int64_t cols;
  std::vector<float> weight;

  absl::Span<const float> Rows(int64_t begin, int64_t count) const {
    return absl::MakeConstSpan(weight).subspan(begin * cols, count * cols);
  }
};

// Counts the components of the product of `count` rows from `begin` on.
int64_t CountComponents(const Projection& query, const Projection& key, int64_t begin,
                        int64_t count) {
  const std::vector<double> values =
      proto::SingularValuesOfProduct(query.Rows(begin, count), key.Rows(begin, count), count);
  double wanted = 0, sum = 0;
  for (const double value : values) wanted += kShare * value * value;
  int64_t components = 0;
  for (const double value : values) {
    if (sum >= wanted) break;
    sum += value * value;
    ++components;
  }
  return components;
}

absl::StatusOr<Projection> ReadProjection(const std::string& prefix, const ModelPart& projection,
                                          WeightSource& weights) {
  Projection read = {projection.out.value(), projection.in.value(), {}};
  read.weight.resize(static_cast<size_t>(read.rows * read.cols));
  RETURN_IF_ERROR(
      weights.Read(absl::StrCat(prefix, projection.name, ".weight"), absl::MakeSpan(read.weight)));
  return read;
}

// Gives each query head the rows of the key head that it reads.
Projection ForEachHead(const Projection& key, const AttentionBlockShape& attention) {
  const int64_t width = attention.key_width;
  Projection repeated = {attention.heads * width, key.cols, {}};
  for (int64_t h = 0; h < attention.heads; ++h) {
    const absl::Span<const float> rows =
        key.Rows(h * attention.kv_heads() / attention.heads * width, width);
    repeated.weight.insert(repeated.weight.end(), rows.begin(), rows.end());
  }
  return repeated;
}

}  // namespace

absl::StatusOr<std::vector<QueryKeyRanks>> MeasureQueryKeyRanks(const ModelDescription& model,
                                                                WeightSource& weights) {
  const LayerShape& layer = model.layer;
  const int64_t rows = layer.query_columns();
  if (!layer.attention.has_input_projection) {
    return absl::InvalidArgumentError("the model has no query and key projections");
  }
  const int64_t widest = std::max({layer.inner_width(), layer.key_inputs(), rows});
  if (widest > kWidestRanks) {
    return absl::OutOfRangeError(
        absl::StrCat("expected a width of at most ", kWidestRanks, " for ranks; got ", widest));
  }
  std::vector<QueryKeyRanks> ranks;
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    const LayerShape& shape = model.layer_shape(i);
    QueryKeyRanks& measured = ranks.emplace_back();
    if (shape.attention.heads == 0) continue;
    const std::string prefix = absl::StrCat("layer.", i, ".");
    const std::vector<ModelPart> projections = InputProjections(shape);
    ASSIGN_OR_RETURN(const Projection query, ReadProjection(prefix, projections[0], weights));
    ASSIGN_OR_RETURN(Projection key, shape.attention.keys_are_queries
                                         ? absl::StatusOr<Projection>(query)
                                         : ReadProjection(prefix, projections[1], weights));
    if (shape.attention.key_value_heads > 0) key = ForEachHead(key, shape.attention);
    for (int64_t h = 0; h < shape.attention.heads; ++h) {
      const int64_t width = shape.attention.key_width;
      measured.heads.push_back(CountComponents(query, key, h * width, width));
    }
    measured.concatenated = CountComponents(query, key, 0, query.rows);
  }
  return ranks;
}

}  // namespace attendant::server
