#include "engine/kernels/gemm/panel.h"

#include "gmock/gmock.h"

namespace attendant {
namespace panel_test {

// The outputs of the layers of MiniLM, BERT-base and BERT-large.
constexpr int64_t kOutputs[] = {384, 768, 1024, 1152, 1536, 2304, 3072, 4096};

TEST(PanelWidthTest, IsTheWidestForAFewThreads) {
  for (const int64_t out : kOutputs) {
    EXPECT_EQ(PanelWidth(out, 1), kPanelWidth) << out;
    EXPECT_EQ(PanelWidth(out, 2), kPanelWidth) << out;
  }
  EXPECT_EQ(PanelWidth(256, 1), 128);  // two equal panels
  EXPECT_EQ(PanelWidth(1, 64), 64);
}

// A batch of one row tile has as many pieces as the layer has panels.
TEST(PanelWidthTest, GivesEachThreadAPieceOfAShortBatch) {
  EXPECT_EQ(ColumnsPerThread(768, PanelWidth(768, 16), 16), 64);
  EXPECT_EQ(ColumnsPerThread(768, kPanelWidth, 16), 192);
  for (const int64_t out : kOutputs) {
    for (int threads = 2; threads <= 64; ++threads) {
      const int64_t most = ColumnsPerThread(out, PanelWidth(out, threads), threads);
      EXPECT_LE(most, ColumnsPerThread(out, kPanelWidth, threads)) << out << " " << threads;
      // Nothing is left to gain by half again.
      const int64_t finest = ColumnsPerThread(out, kPanelWidthMultiple, threads);
      EXPECT_LT(2 * most, 3 * finest + kPanelWidthMultiple) << out << " " << threads;
    }
  }
}

}  // namespace panel_test
}  // namespace attendant
