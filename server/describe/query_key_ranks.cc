#include "server/describe/query_key_ranks.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/model/layer_parts.h"

namespace attendant::server {
namespace {

using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kShare = 0.9;

int64_t CountComponents(const Eigen::MatrixXd& product) {
  if (!product.allFinite()) return 0;
  const Eigen::VectorXd values = Eigen::BDCSVD<Eigen::MatrixXd>(product).singularValues();
  const double wanted = kShare * values.squaredNorm();
  double sum = 0;
  int64_t count = 0;
  while (count < values.size() && sum < wanted) {
    sum += values[count] * values[count];
    ++count;
  }
  return count;
}

// R of W^T = Q R for the rows W of a projection: as large as the smaller side of W.
Eigen::MatrixXd Triangle(const RowMatrix& rows) {
  const Eigen::Index side = std::min(rows.rows(), rows.cols());
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(rows.cast<double>().transpose());
  return Eigen::MatrixXd(qr.matrixQR().topRows(side).triangularView<Eigen::Upper>());
}

// W_Q^T W_K = Q (R R'^T) Q'^T has the singular values of what is in brackets.
int64_t MeasureProduct(const RowMatrix& query, const RowMatrix& key) {
  return CountComponents(Triangle(query) * Triangle(key).transpose());
}

absl::StatusOr<RowMatrix> ReadProjection(const std::string& prefix, const ModelPart& projection,
                                         WeightSource& weights) {
  RowMatrix rows(projection.out.value(), projection.in.value());
  const absl::Status status =
      weights.Read(absl::StrCat(prefix, projection.name, ".weight"),
                   absl::MakeSpan(rows.data(), static_cast<size_t>(rows.size())));
  if (!status.ok()) return status;
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<QueryKeyRanks>> MeasureQueryKeyRanks(const ModelDescription& model,
                                                                WeightSource& weights) {
  const LayerShape& layer = model.layer;
  const int64_t rows = layer.key_columns();
  if (!layer.attention.has_input_projection) {
    return absl::InvalidArgumentError("the model has no projections of queries and keys");
  }
  const int64_t widest = std::max({layer.inner_width(), layer.key_inputs(), rows});
  if (widest > kWidestRanks) {
    return absl::OutOfRangeError(absl::StrCat("ranks are measured up to a width of ", kWidestRanks,
                                              ", the model's is ", widest));
  }
  std::vector<QueryKeyRanks> ranks;
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    const LayerShape shape = model.layer_shape(i);
    QueryKeyRanks& measured = ranks.emplace_back();
    if (shape.attention.heads == 0) continue;
    const std::string prefix = absl::StrCat("layer.", i, ".");
    const std::vector<ModelPart> projections = InputProjections(shape);
    const absl::StatusOr<RowMatrix> query = ReadProjection(prefix, projections[0], weights);
    if (!query.ok()) return query.status();
    const absl::StatusOr<RowMatrix> key =
        shape.attention.keys_are_queries ? query : ReadProjection(prefix, projections[1], weights);
    if (!key.ok()) return key.status();
    for (int64_t h = 0; h < shape.attention.heads; ++h) {
      measured.heads.push_back(MeasureProduct(
          query->middleRows(h * layer.attention.key_width, layer.attention.key_width),
          key->middleRows(h * layer.attention.key_width, layer.attention.key_width)));
    }
    measured.concatenated = MeasureProduct(*query, *key);
  }
  return ranks;
}

}  // namespace attendant::server
