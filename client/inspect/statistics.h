// Statistics of attention probabilities and hidden states, as pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/inspect/matrix.h"

namespace attendant::client {

// For more tokens than this the singular values are left out, because they cost n^3 for each head.
inline constexpr int64_t kMostSingularValues = 1024;
// A head is positional if at least this share of its queries looks most at the same neighbour.
inline constexpr double kPositionalShare = 0.9;

// The statistics of one head's probabilities P [n, n], which have the query rows and key columns of
// the kept tokens only. Rows of zeros, which are queries without a key, do not count.
struct HeadStatistics {
  double confidence = 0;       // mean of the largest probability of each query
  int neighbour = -1;          // -1 or 1: the neighbour that more queries look at most
  double neighbour_share = 0;  // share of such queries among those that have this neighbour
  // The share of queries that look most at a rare token; absent if no token is rare.
  std::optional<double> rare_share = {};
  double symmetry = 0;           // |(P + P^T) / 2|^2 / |P|^2: 1 if P is symmetric
  double largest_asymmetry = 0;  // max |P_ij - P_ji|
  // The sum of the k largest singular values over the sum of all, for k = 1 to n. Empty beyond
  // kMostSingularValues, and if P is not finite.
  std::vector<double> cumulative_singular_values;

  bool positional() const { return neighbour_share >= kPositionalShare; }
};

// `rare` tells of each token whether it is rare; empty: no token is.
HeadStatistics MeasureHead(const Matrix& probabilities, const std::vector<bool>& rare = {});

// Returns |X - mean| / |X| of hidden states X [n, E], where the mean of all rows is subtracted from
// each row: 0 if all tokens are alike (rank collapse) or X is zero.
double TokenUniformity(const Matrix& hidden_states);

// Returns how many of the largest singular values make up this share of the sum; 0 if there are
// none.
int64_t RankOfShare(const std::vector<double>& cumulative_singular_values, double share);

// Returns P with at most `cells` x `cells` cells. If it has more, each cell combines neighbouring
// queries and keys: it holds the total probability that a query gives to these keys, averaged over
// these queries. Rows still sum to 1.
Matrix Coarsen(const Matrix& probabilities, int64_t cells);

}  // namespace attendant::client
