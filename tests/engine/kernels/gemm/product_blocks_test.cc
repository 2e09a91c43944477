#include <atomic>
#include <latch>
#include <memory>
#include <utility>
#include <vector>

#include "engine/kernels/gemm/panel.h"
#include "gmock/gmock.h"

namespace attendant {
namespace product_blocks_test {

using testing::ElementsAre;
using testing::Pair;

using Sizes = std::vector<int64_t>;

// Makes panels with tiles of these sizes; the last panel may have others.
class SomePanels {
 public:
  SomePanels(int64_t count, const Sizes& tiles) : SomePanels(count, tiles, {}) {}
  SomePanels(int64_t count, const Sizes& tiles, const Sizes& last_tiles) {
    const PanelKernels& kernels = Kernels(tiles);
    for (int64_t p = 0; p < count; ++p) panels_.push_back({p, &kernels});
    if (!last_tiles.empty()) panels_.back().kernels = &Kernels(last_tiles);
  }

  absl::Span<const Panel> view() const { return panels_; }
  int64_t count() const { return static_cast<int64_t>(panels_.size()); }

 private:
  const PanelKernels& Kernels(const Sizes& tiles) {
    auto kernels = std::make_unique<PanelKernels>();
    for (const int64_t rows : tiles) kernels->tiles.push_back({rows, {}, {}});
    kernels_.push_back(std::move(kernels));
    return *kernels_.back();
  }

  std::vector<std::unique_ptr<PanelKernels>> kernels_;
  std::vector<Panel> panels_;
};

// Returns {panel, first row} of each block.
std::vector<std::pair<int64_t, int64_t>> Order(const SomePanels& panels, int64_t rows,
                                               ProductBlock (ProductBlocks::*at)(int64_t) const) {
  const ProductBlocks blocks(panels.view(), rows, 256);
  std::vector<std::pair<int64_t, int64_t>> order;
  for (int64_t i = 0; i < blocks.count(); ++i) {
    const ProductBlock block = (blocks.*at)(i);
    order.emplace_back(block.panel.begin, block.rows.begin);
  }
  return order;
}

TEST(ProductBlocksTest, GoPanelByPanelOrRowsByRows) {
  const SomePanels alike(2, {256, 64, 16});
  EXPECT_THAT(Order(alike, 320, &ProductBlocks::PanelByPanel),
              ElementsAre(Pair(0, 0), Pair(0, 256), Pair(1, 0), Pair(1, 256)));
  EXPECT_THAT(Order(alike, 320, &ProductBlocks::RowsByRows),
              ElementsAre(Pair(0, 0), Pair(1, 0), Pair(0, 256), Pair(1, 256)));
  const SomePanels last_differs(3, {256, 64, 16}, {128, 64});
  EXPECT_THAT(Order(last_differs, 320, &ProductBlocks::PanelByPanel),
              ElementsAre(Pair(0, 0), Pair(0, 256), Pair(1, 0), Pair(1, 256), Pair(2, 0),
                          Pair(2, 128), Pair(2, 256)));
  EXPECT_THAT(Order(last_differs, 320, &ProductBlocks::RowsByRows),
              ElementsAre(Pair(0, 0), Pair(1, 0), Pair(0, 256), Pair(1, 256), Pair(2, 0),
                          Pair(2, 128), Pair(2, 256)));
  const SomePanels single(1, {64}, {16});
  EXPECT_THAT(Order(single, 32, &ProductBlocks::RowsByRows), ElementsAre(Pair(0, 0), Pair(0, 16)));
}

// Counts how often each row of each panel is handed out.
using Counts = std::vector<std::vector<int>>;

Counts CountRows(const SomePanels& panels, int64_t rows, int team_size, bool share_rows) {
  Counts counts(panels.count(), std::vector<int>(rows, 0));
  ForBlocks(ThreadTeam(team_size), panels.view(), rows, share_rows,
            [&](int, const Panel& panel, const RowBlock& block) {
              EXPECT_LE(block.rows, block.kernel->rows);
              for (int64_t r = block.begin; r < block.begin + block.rows; ++r) {
                ++counts[panel.begin][r];
              }
            });
  return counts;
}

TEST(ProductBlocksTest, EveryRowOfEveryPanelIsComputedOnce) {
  const SomePanels many(5, {256, 64, 16}), last_differs(3, {256, 64, 16}, {64, 16}),
      coarse(2, {64}), single(1, {256, 64, 16}, {256});
  for (const SomePanels* panels : {&many, &last_differs, &coarse, &single}) {
    for (int64_t rows = 0; rows < 1300; rows += rows < 100 ? 16 : 112) {
      const Counts once(panels->count(), std::vector<int>(rows, 1));
      for (const int team : {1, 2, 3, 4}) {
        EXPECT_EQ(CountRows(*panels, rows, team, true), once) << rows << ", " << team;
        EXPECT_EQ(CountRows(*panels, rows, team, false), once) << rows << ", " << team;
      }
    }
  }
}

// The worker with the first block goes on only when the others have done all the rest.
TEST(ProductBlocksTest, OthersComputeWhatAWorkerThatIsHeldBackLeaves) {
  constexpr int64_t kRows = 640;
  const SomePanels panels(3, {256, 64, 16});
  for (const int team : {2, 3}) {
    std::atomic<int> all = 0;
    ForBlocks(ThreadTeam(team), panels.view(), kRows, true,
              [&](int, const Panel&, const RowBlock&) { ++all; });
    std::latch others(all - 1);
    Counts counts(panels.count(), std::vector<int>(kRows, 0));
    ForBlocks(ThreadTeam(team), panels.view(), kRows, true,
              [&](int, const Panel& panel, const RowBlock& block) {
                for (int64_t r = block.begin; r < block.begin + block.rows; ++r) {
                  ++counts[panel.begin][r];
                }
                if (panel.begin == 0 && block.begin == 0) return others.wait();
                others.count_down();
              });
    EXPECT_EQ(counts, Counts(panels.count(), std::vector<int>(kRows, 1)));
  }
}

}  // namespace product_blocks_test
}  // namespace attendant
