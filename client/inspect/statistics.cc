#include "client/inspect/statistics.h"

#include <Eigen/SVD>
#include <algorithm>

namespace attendant::client {
namespace {

// Returns the share of queries whose largest probability is that of the key at distance `offset`,
// among the queries that have such a key.
double ShareLookingAt(const Matrix& p, int offset) {
  int64_t looking = 0;
  int64_t queries = 0;
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    const Eigen::Index neighbour = i + offset;
    if (neighbour < 0 || neighbour >= p.cols() || p.row(i).isZero(0)) continue;
    Eigen::Index largest = 0;
    p.row(i).maxCoeff(&largest);
    ++queries;
    if (largest == neighbour) ++looking;
  }
  return queries == 0 ? 0 : static_cast<double>(looking) / static_cast<double>(queries);
}

// Returns the share of queries whose largest probability is that of a rare key.
std::optional<double> ShareLookingAtRare(const Matrix& p, const std::vector<bool>& rare) {
  if (std::find(rare.begin(), rare.end(), true) == rare.end()) return std::nullopt;
  int64_t looking = 0, queries = 0;
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    if (p.row(i).isZero(0)) continue;
    Eigen::Index largest = 0;
    p.row(i).maxCoeff(&largest);
    ++queries;
    if (rare[static_cast<size_t>(largest)]) ++looking;
  }
  return queries == 0 ? 0 : static_cast<double>(looking) / static_cast<double>(queries);
}

double Confidence(const Matrix& p) {
  double sum = 0;
  int64_t queries = 0;
  for (Eigen::Index i = 0; i < p.rows(); ++i) {
    if (p.row(i).isZero(0)) continue;
    sum += p.row(i).maxCoeff();
    ++queries;
  }
  return queries == 0 ? 0 : sum / static_cast<double>(queries);
}

std::vector<double> CumulativeSingularValues(const Matrix& p) {
  if (p.rows() == 0 || p.rows() > kMostSingularValues || !p.allFinite()) return {};
  const Eigen::VectorXd values = Eigen::BDCSVD<Matrix>(p).singularValues();
  const double all = values.sum();
  std::vector<double> cumulative;
  double sum = 0;
  for (const double value : values) {
    sum += value;
    cumulative.push_back(all > 0 ? std::min(sum / all, 1.0) : 0);
  }
  return cumulative;
}

// Returns the token at which cell `i` of `cells` begins.
Eigen::Index CellBegin(Eigen::Index i, Eigen::Index cells, Eigen::Index tokens) {
  return i * tokens / cells;
}

}  // namespace

HeadStatistics MeasureHead(const Matrix& p, const std::vector<bool>& rare) {
  HeadStatistics statistics;
  statistics.confidence = Confidence(p);
  const double before = ShareLookingAt(p, -1);
  const double after = ShareLookingAt(p, 1);
  statistics.neighbour = after > before ? 1 : -1;
  statistics.neighbour_share = std::max(before, after);
  statistics.rare_share = ShareLookingAtRare(p, rare);
  const double energy = p.squaredNorm();
  if (energy > 0) {
    statistics.symmetry = (0.5 * (p + p.transpose())).squaredNorm() / energy;
    statistics.largest_asymmetry = (p - p.transpose()).cwiseAbs().maxCoeff();
  }
  statistics.cumulative_singular_values = CumulativeSingularValues(p);
  return statistics;
}

double TokenUniformity(const Matrix& x) {
  const double norm = x.norm();
  if (x.rows() == 0 || norm == 0) return 0;
  return (x.rowwise() - x.colwise().mean()).norm() / norm;
}

int64_t RankOfShare(const std::vector<double>& cumulative, double share) {
  const auto at = std::lower_bound(cumulative.begin(), cumulative.end(), share);
  if (cumulative.empty()) return 0;
  return std::min<int64_t>(at - cumulative.begin() + 1, static_cast<int64_t>(cumulative.size()));
}

Matrix Coarsen(const Matrix& p, int64_t cells) {
  const Eigen::Index tokens = p.rows();
  if (tokens <= cells) return p;
  Matrix coarse(cells, cells);
  for (Eigen::Index i = 0; i < cells; ++i) {
    const Eigen::Index row = CellBegin(i, cells, tokens);
    const Eigen::Index rows = CellBegin(i + 1, cells, tokens) - row;
    for (Eigen::Index j = 0; j < cells; ++j) {
      const Eigen::Index column = CellBegin(j, cells, tokens);
      const Eigen::Index columns = CellBegin(j + 1, cells, tokens) - column;
      coarse(i, j) = p.block(row, column, rows, columns).sum() / static_cast<double>(rows);
    }
  }
  return coarse;
}

}  // namespace attendant::client
