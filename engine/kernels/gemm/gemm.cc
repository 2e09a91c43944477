#include "engine/kernels/gemm/gemm.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/base/aligned_buffer.h"
#include "engine/kernels/gemm/operand_buffer.h"
#include "engine/kernels/gemm/packed_weight.h"
#include "engine/kernels/gemm/product_blocks.h"
#include "engine/kernels/gemm/tile_kernel.h"
#include "engine/kernels/onednn.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {
namespace {

using dnnl::memory;

template <typename T>
void Grow(AlignedBuffer<T>& buffer, int64_t size) {
  if (buffer.size() < size) buffer = AlignedBuffer<T>(size);
}

OperandLayout LayoutOf(const PackedWeight& linear) {
  return {linear.mode, linear.in, linear.k_block};
}

// Makes all rows of x's operand, which is not empty.
void WriteRows(const ThreadTeam& team, MatrixView<const float> x, const PreparedOperand& operand) {
  ForRowTiles(team, x.rows, [&](int worker, int64_t begin, int64_t count) {
    operand.WriteRows(worker, begin, x.Rows(begin, count));
  });
}

}  // namespace

class GemmWorkspace::Impl {
 public:
  explicit Impl(int workers) : workers_(workers), entry_(workers), inner_(workers) {}

  void Reserve(const PackedWeight& linear, int64_t rows) {
    ReserveProducts(linear);
    entry_.Reserve(LayoutOf(linear), rows);
  }
  void ReserveInner(const PackedWeight& linear, int64_t rows) {
    ReserveProducts(linear);
    inner_.Reserve(LayoutOf(linear), rows);
  }

  PreparedOperand Prepare(const PackedWeight& linear, int64_t rows) {
    return entry_.Begin(LayoutOf(linear), rows);
  }
  PreparedOperand PrepareInner(const PackedWeight& linear, int64_t rows) {
    return inner_.Begin(LayoutOf(linear), rows);
  }

  int64_t operand_bytes() const { return entry_.bytes() + inner_.bytes(); }

  void ShareRowsFrom(int64_t rows) { share_rows_from_ = rows; }
  bool SharesRows(int64_t rows) const { return rows >= share_rows_from_; }

  // x for `linear`: its rows themselves, or its operand, which is made if it is not ready.
  Operand OperandOf(const ThreadTeam& team, const PackedWeight& linear, const LinearInput& x);

  // x's rows through the panel's kernel. The result is dense, in memory of the worker, which is in
  // its caches, until its next product.
  MatrixView<float> Run(int worker, const Panel& panel, const RowBlock& block, const Operand& x) {
    return workers_[worker].Run(panel, block, x);
  }

 private:
  void ReserveProducts(const PackedWeight& linear) {
    for (Worker& worker : workers_) {
      for (const Panel& panel : linear.panels) worker.Reserve(*panel.kernels);
    }
  }

  // The product's operands; only their addresses change between runs.
  struct Memories {
    memory x;
    memory y;
    memory scratchpad;
  };

  struct Worker {
    void Reserve(const PanelKernels& kernels);
    void Reserve(const Product& product);
    MatrixView<float> Run(const Panel& panel, const RowBlock& block, const Operand& x);
    void MultiplyOnAmx(const Panel& panel, const RowBlock& block, const Operand& x);
    // The rows of block `x_block` of x, followed by zeros up to the kernel's rows.
    const char* Stage(const PanelShape& shape, const RowBlock& block, const Operand& x,
                      int64_t x_block);
    // The product of this number, x being its rows of x.
    void Execute(const Panel& panel, const TileKernel& kernel, int64_t index, const char* x);

    dnnl::stream stream{onednn::CpuEngine()};
    AlignedBuffer<char> scratchpad;
    AlignedBuffer<char> staged_x;  // for rows that do not lie as the kernel wants them
    AlignedBuffer<float> y;        // of the last product
    absl::flat_hash_map<const Product*, Memories> memories;
  };

  int64_t share_rows_from_ = kNeverShareRows;
  std::vector<Worker> workers_;
  OperandBuffer entry_;
  OperandBuffer inner_;  // of what lies between two layers
};

Operand GemmWorkspace::Impl::OperandOf(const ThreadTeam& team, const PackedWeight& linear,
                                       const LinearInput& x) {
  if (linear.mode.type == ComputeType::kF32) {
    const int64_t stride = x.rows.stride * static_cast<int64_t>(sizeof(float));
    return {reinterpret_cast<const char*>(x.rows.data), stride, 0, nullptr};
  }
  const OperandLayout layout = LayoutOf(linear);
  if (const std::optional<Operand> ready = x.operand.Find(layout)) return *ready;
  WriteRows(team, x.rows, entry_.Begin(layout, x.rows.rows));
  return entry_.Rows(0);
}

void GemmWorkspace::Impl::Worker::Reserve(const PanelKernels& kernels) {
  const PanelShape& shape = kernels.shape;
  for (const TileKernel& kernel : kernels.tiles) {
    Grow(y, kernel.rows * shape.width);
    if (shape.uses_amx || memories.contains(&kernel.first)) continue;
    Reserve(kernel.first);
    if (shape.products() > 1) Reserve(kernel.next);
    Grow(staged_x, kernel.rows * shape.k_block * onednn::ByteWidth(shape.element));
  }
}

void GemmWorkspace::Impl::Worker::Reserve(const Product& product) {
  const dnnl::engine& engine = onednn::CpuEngine();
  memories[&product] = {memory(product.x, engine, nullptr), memory(product.y, engine, nullptr),
                        memory(product.scratchpad, engine, nullptr)};
  Grow(scratchpad, static_cast<int64_t>(product.scratchpad.get_size()));
}

void GemmWorkspace::Impl::Worker::Execute(const Panel& panel, const TileKernel& kernel,
                                          int64_t index, const char* x) {
  const Product& product = index == 0 ? kernel.first : kernel.next;
  const memory& weights = panel.weights[panel.kernels->shape.product(index).weights];
  const Memories& operands = memories.find(&product)->second;
  operands.x.set_data_handle(const_cast<char*>(x));
  operands.y.set_data_handle(y.data());
  operands.scratchpad.set_data_handle(scratchpad.data());
  // The C call: the C++ one would build containers on the heap for each product.
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, operands.x.get()},
                                       {DNNL_ARG_WEIGHTS, weights.get()},
                                       {DNNL_ARG_DST, operands.y.get()},
                                       {DNNL_ARG_SCRATCHPAD, operands.scratchpad.get()},
                                       {DNNL_ARG_BIAS, panel.bias.get()}};
  const bool has_bias = panel.kernels->shape.has_bias && index == 0;
  const int count = static_cast<int>(std::size(arguments)) - (has_bias ? 0 : 1);
  // It puts the arguments into a map of its own, for which there may be no memory.
  const dnnl_status_t status =
      dnnl_primitive_execute(product.primitive.get(), stream.get(), count, arguments);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  dnnl::error::wrap_c_api(status, "oneDNN does not execute a product");
}

const char* GemmWorkspace::Impl::Worker::Stage(const PanelShape& shape, const RowBlock& block,
                                               const Operand& x, int64_t x_block) {
  const int64_t row_bytes = shape.k_block * onednn::ByteWidth(shape.element);
  for (int64_t r = 0; r < block.rows; ++r) {
    std::memcpy(staged_x.data() + r * row_bytes, x.row(x_block, block.begin + r), row_bytes);
  }
  std::memset(staged_x.data() + block.rows * row_bytes, 0,
              (block.kernel->rows - block.rows) * row_bytes);
  return staged_x.data();
}

MatrixView<float> GemmWorkspace::Impl::Worker::Run(const Panel& panel, const RowBlock& block,
                                                   const Operand& x) {
  const PanelShape& shape = panel.kernels->shape;
  const MatrixView<float> result{y.data(), block.rows, shape.width, shape.width};
  if (shape.uses_amx) {
    MultiplyOnAmx(panel, block, x);
    return result;
  }
  const bool direct = block.rows == block.kernel->rows &&
                      x.row_stride == shape.k_block * onednn::ByteWidth(shape.element);
  for (int64_t i = 0; i < shape.products(); ++i) {
    const int64_t x_block = shape.product(i).x;
    const char* rows = direct ? x.row(x_block, block.begin) : Stage(shape, block, x, x_block);
    Execute(panel, *block.kernel, i, rows);
  }
  return result;
}

void GemmWorkspace::Impl::Worker::MultiplyOnAmx(const Panel& panel, const RowBlock& block,
                                                const Operand& x) {
  const PanelShape& shape = panel.kernels->shape;
  const float* bias =
      shape.has_bias ? static_cast<const float*>(panel.bias.get_data_handle()) : nullptr;
  for (int64_t i = 0; i < shape.products(); ++i) {
    const Factors factors = shape.product(i);
    RunAmxGemm({.element = shape.amx_element(),
                .in = shape.k_block,
                .width = shape.width,
                .rows = block.rows,
                .x = x.row(factors.x, block.begin),
                .x_row_bytes = x.row_stride,
                .weight = panel.blocks[factors.weights],
                .bias = i == 0 ? bias : nullptr,
                .add_to_y = i > 0,
                .y = y.data(),
                .y_stride = shape.width});
  }
}

absl::StatusOr<PackedLinear> PackedLinear::Pack(MatrixView<const float> weight,
                                                absl::Span<const float> bias,
                                                const ComputeMode& mode, const ThreadTeam& team,
                                                PageArena arena) {
  absl::StatusOr<std::unique_ptr<const PackedWeight>> packed =
      PackedWeight::Pack(weight, bias, mode, team, arena);
  if (!packed.ok()) return packed.status();
  return PackedLinear(*std::move(packed));
}

int64_t PackedLinear::in_features() const { return weight_->in; }
int64_t PackedLinear::out_features() const { return weight_->out; }
int64_t PackedLinear::bytes() const { return weight_->bytes(); }
ProductPlan PackedLinear::plan() const { return weight_->plan(); }

GemmWorkspace::GemmWorkspace(int workers) : impl_(std::make_unique<Impl>(workers)) {}
GemmWorkspace::GemmWorkspace(GemmWorkspace&&) noexcept = default;
GemmWorkspace::~GemmWorkspace() = default;
void GemmWorkspace::Reserve(const PackedLinear& linear, int64_t rows) {
  impl_->Reserve(linear.weight(), rows);
}
void GemmWorkspace::ReserveInner(const PackedLinear& linear, int64_t rows) {
  impl_->ReserveInner(linear.weight(), rows);
}
PreparedOperand GemmWorkspace::Prepare(const PackedLinear& linear, int64_t rows) {
  return impl_->Prepare(linear.weight(), rows);
}
PreparedOperand GemmWorkspace::PrepareInner(const PackedLinear& linear, int64_t rows) {
  return impl_->PrepareInner(linear.weight(), rows);
}
void GemmWorkspace::ShareRowsFrom(int64_t rows) { impl_->ShareRowsFrom(rows); }
int64_t GemmWorkspace::operand_bytes() const { return impl_->operand_bytes(); }

namespace {

// Returns the panels with any of the columns.
absl::Span<const Panel> PanelsOf(const LinearColumns& columns) {
  const std::vector<Panel>& all = columns.linear.weight().panels;
  const auto before = [](int64_t column, const Panel& panel) { return column < panel.begin; };
  const auto first = std::prev(std::upper_bound(all.begin(), all.end(), columns.begin, before));
  const auto last = std::upper_bound(first, all.end(), columns.end - 1, before);
  return absl::MakeConstSpan(&*first, static_cast<size_t>(last - first));
}

// Turns the sums of products into y = activation(x W^T + b).
struct Epilogue {
  const PackedWeight& linear;
  const Operand& x;
  Activation activation;

  // Computes the rows of y from `first_row` on, in the panel's columns; y may be `sums` itself.
  void operator()(const Panel& panel, int64_t first_row, MatrixView<const float> sums,
                  MatrixView<float> y) const {
    if (linear.mode.type != ComputeType::kInt8) return Activate(activation, sums, y);
    DequantizeAndActivate(DequantizationOf(panel, first_row), activation, sums, y);
  }

  // Likewise, to bfloat16 that the CPU itself rounds to.
  void operator()(const Panel& panel, int64_t first_row, MatrixView<const float> sums,
                  const Bf16Rows& y) const {
    if (linear.mode.type != ComputeType::kInt8) return ActivateToBf16(activation, sums, y);
    DequantizeAndActivateToBf16(DequantizationOf(panel, first_row), activation, sums, y);
  }

  Dequantization DequantizationOf(const Panel& panel, int64_t first_row) const {
    return {.row_scales = x.scales + first_row,
            .column_scales = linear.column_scales.data() + panel.begin,
            .bias = linear.bias.data() + panel.begin,
            .integers = !linear.mode.emulate};
  }
};

// Returns the place of a block of y, from `row` and `column` on, if it is to be bfloat16 that the
// CPU itself rounds to.
std::optional<Bf16Rows> NativePlace(const LinearOutput& y, int64_t row, int64_t column,
                                    int64_t count) {
  if (!y.is_pairs) return y.operand.NativePlace(row, column, count);
  return Bf16Rows{reinterpret_cast<uint16_t*>(y.rows.row(row)) + column, 2 * y.rows.stride};
}

// Finishes the sums of a block in their own memory and writes them to the operand, some rows at a
// time, while they are in the nearest cache.
void FinishInCache(int worker, const Epilogue& epilogue, const Panel& panel, int64_t first_row,
                   MatrixView<float> sums, const PreparedOperand& operand) {
  constexpr int64_t kRowsInCache = 16;
  for (int64_t begin = 0; begin < sums.rows; begin += kRowsInCache) {
    const MatrixView<float> rows = sums.Rows(begin, std::min(kRowsInCache, sums.rows - begin));
    epilogue(panel, first_row + begin, rows, rows);
    operand.WriteRows(worker, first_row + begin, rows, panel.begin);
  }
}

// Puts a block of y, whose sums are in the worker's caches, where the consumer reads it.
void Finish(int worker, const Epilogue& epilogue, const Panel& panel, int64_t first_row,
            MatrixView<float> sums, const LinearOutput& y) {
  if (const auto rounded = NativePlace(y, first_row, panel.begin, sums.cols)) {
    epilogue(panel, first_row, sums, *rounded);
  } else if (y.operand.TakesColumns()) {
    FinishInCache(worker, epilogue, panel, first_row, sums, y.operand);
  } else {
    epilogue(panel, first_row, sums,
             y.rows.Rows(first_row, sums.rows).Columns(panel.begin, sums.cols));
  }
}

}  // namespace

void ApplyLinear(const ThreadTeam& team, const LinearColumns& columns, const LinearInput& x,
                 const LinearOutput& y, Activation activation, GemmWorkspace& workspace) {
  const PackedWeight& linear = columns.linear.weight();
  const int64_t rows = x.rows.rows;
  assert(0 <= columns.begin && columns.begin < columns.end && columns.end <= linear.out);
  assert(x.rows.cols == linear.in && y.rows.cols * (y.is_pairs ? 2 : 1) == linear.out);
  assert(y.rows.rows == rows && rows % kRowTile == 0);
  const Operand operand = workspace.impl().OperandOf(team, linear, x);
  const Epilogue epilogue = {linear, operand, activation};
  ForBlocks(team, PanelsOf(columns), rows, workspace.impl().SharesRows(rows),
            [&](int worker, const Panel& panel, const RowBlock& block) {
              const MatrixView<float> sums = workspace.impl().Run(worker, panel, block, operand);
              Finish(worker, epilogue, panel, block.begin, sums, y);
            });
  if (!y.operand.empty() && !y.operand.TakesColumns()) WriteRows(team, y.rows, y.operand);
}

}  // namespace attendant
