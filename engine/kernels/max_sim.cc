#include "engine/kernels/max_sim.h"

#include <algorithm>
#include <cmath>
#include <limits>

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/max_sim.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

// The numbers of rows of the query and of the document whose products are in registers at a time.
constexpr int kQueries = 2;
constexpr int kRows = 4;

struct RowTile {
  const float* queries[kQueries];
  const float* rows[kRows];
};

// Adds the products of the columns that `load` returns.
template <class Load>
HWY_INLINE void AddProducts(const RowTile& tile, const Load& load,
                            Floats (&sums)[kQueries][kRows]) {
  Floats queries[kQueries];
  ForEach<kQueries>([&](int q) HWY_ATTR { queries[q] = load(tile.queries[q]); });
  ForEach<kRows>([&](int r) HWY_ATTR {
    const Floats row = load(tile.rows[r]);
    ForEach<kQueries>([&](int q)
                          HWY_ATTR { sums[q][r] = hn::MulAdd(queries[q], row, sums[q][r]); });
  });
}

// Sets largest[q] to the maximum of itself and the dot products of query q with the rows.
// Propagates NaN.
HWY_INLINE void RaiseToProducts(const RowTile& tile, int64_t width, float* largest) {
  const FloatTag d;
  Floats sums[kQueries][kRows];
  ForEach<kQueries>([&](int q) HWY_ATTR {
    ForEach<kRows>([&](int r) HWY_ATTR { sums[q][r] = hn::Zero(d); });
  });
  constexpr int64_t lanes = kLanes;
  int64_t j = 0;
  for (; j + lanes <= width; j += lanes) {
    AddProducts(
        tile, [&](const float* from) { return hn::LoadU(d, from + j); }, sums);
  }
  if (j < width) {
    const auto rest = static_cast<size_t>(width - j);
    AddProducts(
        tile, [&](const float* from) { return LoadFirst(from + j, rest); }, sums);
  }
  ForEach<kQueries>([&](int q) HWY_ATTR {
    ForEach<kRows>([&](int r) HWY_ATTR {
      const float product = hn::GetLane(hn::SumOfLanes(d, sums[q][r]));
      if (product > largest[q] || std::isnan(product)) largest[q] = product;
    });
  });
}

double SumOfLargest(MatrixView<const float> query, MatrixView<const float> document,
                    absl::Span<const int32_t> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  double score = 0;
  for (int64_t first = 0; first < query.rows; first += kQueries) {
    RowTile tile;
    // At the ends some rows are computed twice, which does not change the maximum.
    for (int q = 0; q < kQueries; ++q) {
      tile.queries[q] = query.row(std::min(first + q, query.rows - 1));
    }
    float largest[kQueries];
    std::fill_n(largest, kQueries, -std::numeric_limits<float>::infinity());
    for (int64_t at = 0; at < count; at += kRows) {
      for (int r = 0; r < kRows; ++r) {
        tile.rows[r] = document.row(rows[static_cast<size_t>(std::min(at + r, count - 1))]);
      }
      RaiseToProducts(tile, query.cols, largest);
    }
    for (int64_t q = 0; q < std::min<int64_t>(kQueries, query.rows - first); ++q) {
      score += largest[q];
    }
  }
  return score;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(SumOfLargest);

float MaxSim(MatrixView<const float> query, MatrixView<const float> document,
             absl::Span<const int32_t> rows) {
  if (rows.empty()) return 0;
  return static_cast<float>(HWY_DYNAMIC_DISPATCH(SumOfLargest)(query, document, rows));
}

}  // namespace attendant
#endif  // HWY_ONCE
