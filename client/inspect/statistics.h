// Statistics of attention probabilities and hidden states. Pure functions.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <vector>

namespace attendant::client {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Beyond this many tokens the singular values are left out: they cost n^3 for each head.
inline constexpr int64_t kMostSingularValues = 1024;
// A head is positional if this share of its queries looks at the same neighbour most.
inline constexpr double kPositionalShare = 0.9;

// The statistics of one head's probabilities P [n, n], query rows and key columns of the kept
// tokens alone. Rows of zeros (queries without a key) do not count.
struct HeadStatistics {
  double confidence = 0;       // mean over the queries of their largest probability
  int neighbour = -1;          // -1 or 1: which neighbour more queries look at most
  double neighbour_share = 0;  // how many do, of those that have this neighbour
  // How many queries look most at a rare token; absent if no token is rare.
  std::optional<double> rare_share = {};
  double symmetry = 0;           // |(P + P^T) / 2|^2 / |P|^2: 1 if P is symmetric
  double largest_asymmetry = 0;  // of |P_ij - P_ji|
  // Sum of the k largest singular values over the sum of all, k = 1 to n. Empty beyond
  // kMostSingularValues, and if P is not finite.
  std::vector<double> cumulative_singular_values;

  bool positional() const { return neighbour_share >= kPositionalShare; }
};

// `rare`: of each token; or empty: none is.
HeadStatistics MeasureHead(const Matrix& probabilities, const std::vector<bool>& rare = {});

// |X - mean| / |X| of hidden states X [n, E], the mean of its rows taken from each: 0 if all tokens
// are alike (rank collapse), or X is zero.
double TokenUniformity(const Matrix& hidden_states);

// How many of the largest singular values make up this share of the sum; 0 if there are none.
int64_t RankOfShare(const std::vector<double>& cumulative_singular_values, double share);

// P in at most `cells` x `cells`. Beyond that each cell stands for neighbouring queries and keys:
// the probability that its queries give to its keys together, in the mean of the queries. Rows keep
// their sum of 1.
Matrix Coarsen(const Matrix& probabilities, int64_t cells);

}  // namespace attendant::client
