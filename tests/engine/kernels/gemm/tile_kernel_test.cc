#include "engine/kernels/gemm/tile_kernel.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/kernels/isa.h"
#include "gmock/gmock.h"

namespace attendant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// Returns the results of one column: row r has probe r % 2, whose values are 10 and 20, plus
// `deviation` in the last row.
TileCandidate Candidate(int64_t rows, float offset, float deviation) {
  TileCandidate candidate{rows, {}};
  for (int64_t r = 0; r < rows; ++r)
    candidate.results.push_back((r % 2 == 0 ? 10.0f : 20.0f) + offset);
  candidate.results.back() += deviation;
  return candidate;
}

TEST(AgreeingCandidatesTest, KeepsAllThatAgree) {
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 0, 0), Candidate(4, 0, 0), Candidate(2, 0, 0)}, 2, 1),
      ElementsAre(0, 1, 2));
}

TEST(AgreeingCandidatesTest, DropsSizesWhoseRowsDifferAmongThemselves) {
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 0, 0), Candidate(4, 0, 1), Candidate(2, 0, 0)}, 2, 1),
      ElementsAre(0, 2));
}

TEST(AgreeingCandidatesTest, FollowsTheSmallestUniformSize) {
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 5, 0), Candidate(6, 0, 0), Candidate(4, 0, 0)}, 2, 1),
      ElementsAre(1, 2));
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 5, 0), Candidate(6, 5, 0), Candidate(4, 0, 1)}, 2, 1),
      ElementsAre(0, 1));
}

TEST(AgreeingCandidatesTest, MayKeepNone) {
  EXPECT_THAT(AgreeingCandidates({Candidate(8, 0, 1), Candidate(4, 0, 2)}, 2, 1), IsEmpty());
}

// Returns {block of x, block of W} of each product.
std::vector<std::vector<int64_t>> ProductsOf(const PanelShape& shape) {
  std::vector<std::vector<int64_t>> products;
  for (int64_t i = 0; i < shape.products(); ++i) {
    products.push_back({shape.product(i).x, shape.product(i).weights});
  }
  return products;
}

TEST(PanelShapeTest, MultipliesEachBlockOfOnePart) {
  const PanelShape shape{.in = 96, .width = 16, .k_block = 32};
  EXPECT_EQ(shape.blocks(), 3);
  EXPECT_THAT(ProductsOf(shape),
              ElementsAre(ElementsAre(0, 0), ElementsAre(1, 1), ElementsAre(2, 2)));
}

TEST(PanelShapeTest, MultipliesTwoPartsButNotTheLowOnes) {
  const PanelShape shape{.in = 64, .width = 16, .k_block = 32, .parts = 2};
  EXPECT_EQ(shape.blocks(), 4);
  EXPECT_THAT(ProductsOf(shape),
              ElementsAre(ElementsAre(1, 0), ElementsAre(0, 1), ElementsAre(0, 0),
                          ElementsAre(3, 2), ElementsAre(2, 3), ElementsAre(2, 2)));
}

TEST(ChooseKBlockTest, TakesTheFirstCleanOne) {
  std::vector<int64_t> tried;
  const auto clean_below_400 = [&](int64_t block) -> absl::StatusOr<bool> {
    tried.push_back(block);
    return block < 400;
  };
  EXPECT_EQ(*ChooseKBlock({1536, 768, 384, 128}, clean_below_400), 384);
  EXPECT_THAT(tried, ElementsAre(1536, 768, 384));
}

TEST(ChooseKBlockTest, FallsBackToTheFirst) {
  const auto none = [](int64_t) -> absl::StatusOr<bool> { return false; };
  EXPECT_EQ(*ChooseKBlock({1536, 768}, none), 1536);
  EXPECT_EQ(*ChooseKBlock({50}, none), 50);
}

TEST(ChooseKBlockTest, PassesOnErrors) {
  const auto fail = [](int64_t) -> absl::StatusOr<bool> { return absl::InternalError("no"); };
  EXPECT_EQ(ChooseKBlock({1536, 768}, fail).status(), absl::InternalError("no"));
}

TEST(FindPanelKernelsTest, HoldsEachShapeOnce) {
  const PanelShape shape{.in = 24, .width = 16, .k_block = 24};
  const absl::StatusOr<const PanelKernels*> first = FindPanelKernels(shape);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, *FindPanelKernels(shape));
  PanelShape other = shape;
  other.width = 32;
  EXPECT_NE(*first, *FindPanelKernels(other));
  other = shape;
  other.k_block = 12;
  EXPECT_NE(*first, *FindPanelKernels(other));
  EXPECT_THAT((*first)->tiles, testing::Not(IsEmpty()));
}

// oneDNN has one fast kernel, for AVX-512 and newer, which it names "brg…". Other kernels pack
// their operands anew in each call, which no test of results would notice.
TEST(FindPanelKernelsTest, UsesTheFastKernelWhereTheCpuHasIt) {
  const bool has_avx512 = EffectiveIsa().substr(0, 6) == "avx512" || HasAmxUnits();
  const testing::Matcher<std::string> expected = StartsWith(has_avx512 ? "brg" : "");
  std::vector<onednn::DataType> elements = {onednn::DataType::f32};
  if (HasBf16Units()) elements.push_back(onednn::DataType::bf16);
  if (HasInt8Units()) elements.push_back(onednn::DataType::s8);
  for (const onednn::DataType element : elements) {
    const bool is_int8 = element == onednn::DataType::s8;
    for (const auto& [in, k_block] : {std::pair{768, 768}, {3072, 3072}, {3072, 768}, {384, 384}}) {
      if (is_int8 && k_block != in) continue;
      for (const int64_t width : {64, 128, 192}) {
        const auto kernels = FindPanelKernels({.in = in,
                                               .width = width,
                                               .k_block = k_block,
                                               .element = element,
                                               .has_bias = !is_int8});
        ASSERT_TRUE(kernels.ok()) << kernels.status();
        for (const TileKernel& tile : (*kernels)->tiles) {
          EXPECT_THAT(tile.first.implementation, expected)
              << in << " by " << width << ", " << tile.rows << " rows";
          if (k_block == in) continue;
          EXPECT_THAT(tile.next.implementation, expected)
              << in << " by " << width << ", " << tile.rows << " rows, added";
        }
      }
    }
  }
}

TEST(FindPanelKernelsTest, SaysWhetherAllSizesAgree) {
  for (const int64_t block : {256, 128}) {
    const auto kernels = FindPanelKernels({.in = 256, .width = 64, .k_block = block});
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    EXPECT_EQ((*kernels)->all_agree, (*kernels)->tiles.size() == 3);
  }
}

TEST(FindPanelKernelsTest, RefusesWhatOneDnnRefuses) {
  const absl::StatusOr<const PanelKernels*> kernels =
      FindPanelKernels({.in = -1, .width = 16, .k_block = -1});
  EXPECT_EQ(kernels.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(kernels.status().message()), testing::HasSubstr("product of -1 by 16"));
}

}  // namespace
}  // namespace attendant
