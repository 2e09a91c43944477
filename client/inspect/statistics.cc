#include "client/inspect/statistics.h"

#include <algorithm>
#include <cmath>

#include "proto/singular_values.h"

namespace attendant::client {
namespace {

// Calls visit(query, largest key) for the queries that have a key.
template <typename Visitor>
void ForQueries(const Matrix& p, const Visitor& visit) {
  for (int64_t i = 0; i < p.rows(); ++i) {
    const absl::Span<const double> row = p.row(i);
    if (std::all_of(row.begin(), row.end(), [](double x) { return x == 0; })) continue;
    visit(i, std::max_element(row.begin(), row.end()) - row.begin());
  }
}

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Returns the share of queries whose largest probability is that of the key at distance `offset`,
// among the queries that have such a key.
double ShareLookingAt(const Matrix& p, int offset) {
  int64_t looking = 0;
  int64_t queries = 0;
  ForQueries(p, [&](int64_t query, int64_t largest) {
    const int64_t neighbour = query + offset;
    if (neighbour < 0 || neighbour >= p.cols()) return;
    ++queries;
    if (largest == neighbour) ++looking;
  });
  return Share(looking, queries);
}

// Returns the share of queries that attend most to a rare key.
std::optional<double> ShareLookingAtRare(const Matrix& p, const std::vector<bool>& rare) {
  if (std::find(rare.begin(), rare.end(), true) == rare.end()) return std::nullopt;
  int64_t looking = 0, queries = 0;
  ForQueries(p, [&](int64_t, int64_t largest) {
    ++queries;
    if (rare[static_cast<size_t>(largest)]) ++looking;
  });
  return Share(looking, queries);
}

double Confidence(const Matrix& p) {
  double sum = 0;
  int64_t queries = 0;
  ForQueries(p, [&](int64_t query, int64_t largest) {
    sum += p(query, largest);
    ++queries;
  });
  return queries == 0 ? 0 : sum / static_cast<double>(queries);
}

std::vector<double> CumulativeSingularValues(const Matrix& p) {
  if (p.rows() > kMostSingularValues) return {};
  std::vector<double> values = proto::SingularValues(p.values(), p.rows(), p.cols());
  double all = 0, sum = 0;
  for (const double value : values) all += value;
  for (double& value : values) {
    sum += value;
    value = all > 0 ? std::min(sum / all, 1.0) : 0;
  }
  return values;
}

double SquaredNorm(const Matrix& x) {
  double sum = 0;
  for (const double value : x.values()) sum += value * value;
  return sum;
}

// Sets the two measures of symmetry.
void MeasureSymmetry(const Matrix& p, HeadStatistics& statistics) {
  const double energy = SquaredNorm(p);
  if (!(energy > 0)) return;
  double symmetric = 0;
  for (int64_t i = 0; i < p.rows(); ++i) {
    for (int64_t j = 0; j < p.cols(); ++j) {
      const double mean = 0.5 * (p(i, j) + p(j, i));
      symmetric += mean * mean;
      statistics.largest_asymmetry =
          std::max(statistics.largest_asymmetry, std::abs(p(i, j) - p(j, i)));
    }
  }
  statistics.symmetry = symmetric / energy;
}

// Returns the token at which cell `i` of `cells` begins.
int64_t CellBegin(int64_t i, int64_t cells, int64_t tokens) { return i * tokens / cells; }

}  // namespace

HeadStatistics MeasureHead(const Matrix& p, const std::vector<bool>& rare) {
  HeadStatistics statistics;
  statistics.confidence = Confidence(p);
  const double before = ShareLookingAt(p, -1);
  const double after = ShareLookingAt(p, 1);
  statistics.neighbour = after > before ? 1 : -1;
  statistics.neighbour_share = std::max(before, after);
  statistics.rare_share = ShareLookingAtRare(p, rare);
  MeasureSymmetry(p, statistics);
  statistics.cumulative_singular_values = CumulativeSingularValues(p);
  return statistics;
}

double TokenUniformity(const Matrix& x) {
  const double norm = SquaredNorm(x);
  if (norm == 0) return 0;
  std::vector<double> mean(static_cast<size_t>(x.cols()), 0);
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (size_t j = 0; j < mean.size(); ++j) mean[j] += x.row(i)[j];
  }
  for (double& value : mean) value /= static_cast<double>(x.rows());
  double distance = 0;
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (size_t j = 0; j < mean.size(); ++j) {
      const double difference = x.row(i)[j] - mean[j];
      distance += difference * difference;
    }
  }
  return std::sqrt(distance) / std::sqrt(norm);
}

int64_t RankOfShare(const std::vector<double>& cumulative, double share) {
  const auto at = std::lower_bound(cumulative.begin(), cumulative.end(), share);
  if (cumulative.empty()) return 0;
  return std::min<int64_t>(at - cumulative.begin() + 1, static_cast<int64_t>(cumulative.size()));
}

Matrix Coarsen(const Matrix& p, int64_t cells) {
  const int64_t tokens = p.rows();
  if (tokens <= cells) return p;
  Matrix coarse(cells, cells);
  for (int64_t cell = 0; cell < cells; ++cell) {
    const int64_t begin = CellBegin(cell, cells, tokens);
    const int64_t end = CellBegin(cell + 1, cells, tokens);
    for (int64_t other = 0; other < cells; ++other) {
      double& sum = coarse(cell, other);
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = CellBegin(other, cells, tokens); j < CellBegin(other + 1, cells, tokens);
             ++j) {
          sum += p(i, j);
        }
      }
      sum /= static_cast<double>(end - begin);
    }
  }
  return coarse;
}

}  // namespace attendant::client
