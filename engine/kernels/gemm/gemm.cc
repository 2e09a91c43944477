#include "engine/kernels/gemm/gemm.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "engine/kernels/gemm/packed_input_buffer.h"
#include "engine/kernels/gemm/packed_weight.h"
#include "engine/kernels/gemm/panel.h"
#include "engine/kernels/gemm/product_runner.h"

namespace attendant {
namespace {

PackedInputLayout LayoutOf(const PackedWeight& linear) {
  return {linear.mode, linear.plan.in, linear.plan.k_block};
}

// Packs all rows of x into `packed`, which is not empty.
void WriteRows(const ThreadTeam& team, MatrixView<const float> x, const PackedInput& packed) {
  ForRowTiles(team, x.rows, [&](int worker, int64_t begin, int64_t count) {
    packed.WriteRows(worker, begin, x.Rows(begin, count));
  });
}

}  // namespace

struct GemmWorkspace::Impl {
  explicit Impl(const ThreadTeam& threads)
      : team(threads), runners(threads.size()), entry(threads.size()), inner(threads.size()) {}

  void ReserveProducts(const ProductNeeds& needs) {
    for (ProductRunner& runner : runners) {
      for (const PanelKernels* kernels : needs.kernels) runner.Reserve(*kernels);
    }
  }

  // Returns x as `linear` reads it: its rows, or its packed form, which is written if x lacks it.
  PackedInputView PackedInputOf(const PackedWeight& linear, const LinearInput& x) {
    if (linear.mode.type == ComputeType::kF32) {
      const int64_t stride = x.rows.stride * static_cast<int64_t>(sizeof(float));
      return {reinterpret_cast<const char*>(x.rows.data), stride, 0, nullptr};
    }
    const PackedInputLayout layout = LayoutOf(linear);
    if (const std::optional<PackedInputView> ready = x.packed.Find(layout)) return *ready;
    const PackedInput written = entry.Begin(layout, x.rows.rows);
    WriteRows(team, x.rows, written);
    return *written.Find(layout);
  }

  const ThreadTeam& team;
  int64_t share_rows_from = 0;         // 0 means never
  std::vector<ProductRunner> runners;  // one per worker
  PackedInputBuffer entry;
  PackedInputBuffer inner;  // for the rows between two layers
};

ProductNeeds::ProductNeeds(const PackedLinear& linear)
    : input(LayoutOf(linear.weight())),
      kernels({linear.weight().panels.front().kernels, linear.weight().panels.back().kernels}) {}

int64_t PackedLinear::in_features() const { return weight_->plan.in; }
int64_t PackedLinear::out_features() const { return weight_->plan.out; }
int64_t PackedLinear::bytes() const { return weight_->bytes(); }
const ProductPlan& PackedLinear::plan() const { return weight_->plan; }

GemmWorkspace::GemmWorkspace(const ThreadTeam& team) : impl_(std::make_unique<Impl>(team)) {}
GemmWorkspace::GemmWorkspace(GemmWorkspace&&) noexcept = default;
GemmWorkspace::~GemmWorkspace() = default;

void GemmWorkspace::Reserve(const ProductNeeds& needs, int64_t rows) {
  impl_->ReserveProducts(needs);
  impl_->entry.Reserve(needs.input, rows);
}

void GemmWorkspace::ReserveInner(const ProductNeeds& needs, int64_t rows) {
  impl_->ReserveProducts(needs);
  impl_->inner.Reserve(needs.input, rows);
}

PackedInput GemmWorkspace::Prepare(int64_t in, int64_t rows) {
  return impl_->entry.Begin(in, rows);
}

PackedInput GemmWorkspace::PrepareInner(int64_t in, int64_t rows) {
  return impl_->inner.Begin(in, rows);
}

void GemmWorkspace::ShareRowsFrom(int64_t rows) { impl_->share_rows_from = rows; }

int64_t GemmWorkspace::packed_input_bytes() const {
  return impl_->entry.bytes() + impl_->inner.bytes();
}

namespace {

// Returns the panels that contain any of the columns.
absl::Span<const Panel> PanelsOf(const LinearColumns& columns) {
  const std::vector<Panel>& all = columns.linear.weight().panels;
  const auto before = [](int64_t column, const Panel& panel) { return column < panel.begin; };
  const auto first = std::prev(std::upper_bound(all.begin(), all.end(), columns.begin, before));
  const auto last = std::upper_bound(first, all.end(), columns.end - 1, before);
  return absl::MakeConstSpan(&*first, static_cast<size_t>(last - first));
}

// Computes y = activation(x W^T + b) from the sums of products.
struct Epilogue {
  const PackedWeight& linear;
  const PackedInputView& x;
  Activation activation;

  // Returns the conversion of the sums of a panel, from `row` on.
  Dequantization DequantizationOf(const Panel& panel, int64_t row) const {
    if (linear.mode.type != ComputeType::kInt8) return {};
    return {.row_scales = x.scales + row,
            .column_scales = linear.column_scales.data() + panel.begin,
            .bias = linear.bias.data() + panel.begin,
            .integers = !linear.mode.emulate};
  }
};

// Returns the memory of a block of y, from `row` and `column` on, if the destination is bfloat16
// that the CPU has instructions to round to.
std::optional<Bf16Rows> NativePlace(const PreparedRows& y, int64_t row, int64_t column,
                                    int64_t count) {
  if (!y.is_pairs) return y.packed.NativePlace(row, column, count);
  return Bf16Rows{reinterpret_cast<uint16_t*>(y.rows.row(row)) + column, 2 * y.rows.stride};
}

// Finishes the sums of a block in place and writes them to the packed input of the next layer, some
// rows at a time, while they are in the L1 cache.
void FinishInCache(int worker, const Epilogue& epilogue, const Panel& panel, int64_t first_row,
                   MatrixView<float> sums, const PackedInput& packed) {
  constexpr int64_t kRowsInCache = 16;
  for (int64_t begin = 0; begin < sums.rows; begin += kRowsInCache) {
    const MatrixView<float> rows = sums.Rows(begin, std::min(kRowsInCache, sums.rows - begin));
    Activate(epilogue.activation, rows, rows, epilogue.DequantizationOf(panel, first_row + begin));
    packed.WriteRows(worker, first_row + begin, rows, panel.begin);
  }
}

// Writes a block of y, whose sums are in the worker's caches, to its destination.
void Finish(int worker, const Epilogue& epilogue, const Panel& panel, int64_t first_row,
            MatrixView<float> sums, const PreparedRows& y) {
  if (const auto rounded = NativePlace(y, first_row, panel.begin, sums.cols)) {
    ActivateToBf16(epilogue.activation, sums, *rounded,
                   epilogue.DequantizationOf(panel, first_row));
  } else if (y.packed.TakesColumns()) {
    FinishInCache(worker, epilogue, panel, first_row, sums, y.packed);
  } else {
    Activate(epilogue.activation, sums,
             y.rows.Rows(first_row, sums.rows).Columns(panel.begin, sums.cols),
             epilogue.DequantizationOf(panel, first_row));
  }
}

}  // namespace

void GemmWorkspace::Apply(const LinearColumns& columns, const LinearInput& x, const PreparedRows& y,
                          Activation activation) {
  const PackedWeight& linear = columns.linear.weight();
  const int64_t rows = x.rows.rows;
  assert(0 <= columns.begin && columns.begin < columns.end && columns.end <= linear.plan.out);
  assert(x.rows.cols == linear.plan.in);
  assert(y.rows.cols * (y.is_pairs ? 2 : 1) == linear.plan.out);
  assert(y.rows.rows == rows);
  const PackedInputView packed = impl_->PackedInputOf(linear, x);
  const Epilogue epilogue = {linear, packed, activation};
  const bool share_rows = impl_->share_rows_from > 0 && rows >= impl_->share_rows_from;
  ForBlocks(impl_->team, PanelsOf(columns), rows, share_rows,
            [&](int worker, const Panel& panel, const RowBlock& block) {
              const MatrixView<float> sums = impl_->runners[worker].Run(panel, block, packed);
              Finish(worker, epilogue, panel, block.begin, sums, y);
            });
  if (!y.packed.empty() && !y.packed.TakesColumns()) WriteRows(impl_->team, y.rows, y.packed);
}

}  // namespace attendant
