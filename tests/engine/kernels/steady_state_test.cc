// Kernels of an instance that has warmed up take nothing from the heap.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "engine/kernels/attention.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/isa.h"
#include "engine/kernels/norm.h"
#include "gmock/gmock.h"
#include "tests/support/random_values.h"

namespace {

std::atomic<int64_t> allocations = 0;

}  // namespace

// All other forms of new and delete end here.
void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace attendant {
namespace {

TEST(SteadyStateTest, AttentionNormsAndConversionsAllocateNothing) {
  constexpr int64_t kRows = 700, kHeads = 2, kWidth = 24, kColumns = kHeads * kWidth;
  const ThreadTeam team(2);
  const AttentionShape shape{kHeads, kWidth, kWidth, 0.2f};
  AttentionShape rounded = shape;
  rounded.mode = {ComputeType::kBf16, !HasBf16Units()};
  const std::vector<float> qkv = RandomValues(kRows * kColumns, 1), ones(kColumns, 1.0f);
  std::vector<float> context(qkv.size()), normal(qkv.size());
  const std::vector<AttentionSequence> sequences = {{0, 60}, {60, 600}, {660, 40}};
  AttentionWorkspace workspace(2, shape, 600), rounded_workspace(2, rounded, 600);
  const MatrixView<const float> x = ViewOf(qkv, kRows, kColumns);
  const auto run = [&] {
    Attention(team, shape, {x, x, x}, sequences, ViewOf(context, kRows, kColumns), workspace);
    Attention(team, rounded, {x, x, x}, sequences, ViewOf(context, kRows, kColumns),
              rounded_workspace);
    AddLayerNorm(team, ViewOf(context, kRows, kColumns), x, {ones, ones, 1e-5f},
                 ViewOf(normal, kRows, kColumns));
    FromFloat(normal.data(), kRows * kColumns, DataType::kBFloat16, context.data());
  };
  run();
  const int64_t before = allocations.load();
  run();
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace attendant
