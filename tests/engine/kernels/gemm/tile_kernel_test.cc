#include "engine/kernels/gemm/tile_kernel.h"

#include <vector>

#include "gmock/gmock.h"

namespace attendant {
namespace tile_kernel_test {

using testing::ElementsAre;

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

}  // namespace tile_kernel_test
}  // namespace attendant
