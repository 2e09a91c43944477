#include "tests/bench/engine_products.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/onednn.h"
#include "engine/kernels/packed_linear.h"
#include "engine/kernels/product_blocks.h"
#include "tests/bench/kernel_operands.h"
#include "tests/bench/product_widths.h"

namespace attendant::bench {
namespace {

using dnnl::memory;

// Small whole numbers, which every type holds.
AlignedBuffer<char> MakeElements(onednn::DataType type, int64_t count) {
  const int64_t width = onednn::ByteWidth(type);
  AlignedBuffer<char> elements(count * width);
  for (int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<int8_t>(i * 37 % 255 - 127);
    const auto value = static_cast<float>(number);
    char* const element = elements.data() + i * width;
    if (type == onednn::DataType::s8) {
      std::memcpy(element, &number, sizeof number);
    } else {  // the upper half of a float32 is a bfloat16
      std::memcpy(element, reinterpret_cast<const char*>(&value) + sizeof value - width, width);
    }
  }
  return elements;
}

// Of the layers of one width: x as their products read it (see PanelShape), and y.
struct Operands {
  Operands(const PackedLinear::Impl& linear, int64_t rows)
      : row_bytes(linear.k_block * onednn::ByteWidth(Shape(linear).element)),
        block_bytes(ReadableRows(linear, rows) * row_bytes),
        x(MakeElements(Shape(linear).element,
                       Shape(linear).blocks() * ReadableRows(linear, rows) * linear.k_block)),
        y(rows * linear.out) {}

  static const PanelShape& Shape(const PackedLinear::Impl& linear) {
    return linear.panels.front().kernels->shape;
  }
  // A tile may read beyond the last row.
  static int64_t ReadableRows(const PackedLinear::Impl& linear, int64_t rows) {
    return rows + linear.panels.front().kernels->tiles.front().rows;
  }

  int64_t row_bytes;
  int64_t block_bytes;
  AlignedBuffer<char> x;
  AlignedBuffer<float> y;  // or int32
};

// What one thread needs beside the operands.
class Worker {
 public:
  void Reserve(const PackedLinear::Impl& linear) {
    for (const Panel& panel : linear.panels) {
      for (const TileKernel& kernel : panel.kernels->tiles) {
        Reserve(kernel.first);
        if (panel.kernels->shape.products() > 1) Reserve(kernel.next);
        Grow(staged_y_, kernel.rows * linear.out);
      }
    }
  }

  void Run(const Panel& panel, const RowBlock& block, Operands& operands) {
    const PanelShape& shape = panel.kernels->shape;
    const bool fits = block.rows == block.kernel->rows;
    float* const y =
        fits ? operands.y.data() + block.begin * shape.y_stride + panel.begin : staged_y_.data();
    for (int64_t i = 0; i < shape.products(); ++i) {
      char* const x = operands.x.data() + shape.product(i).x * operands.block_bytes +
                      block.begin * operands.row_bytes;
      Execute(panel, i == 0 ? block.kernel->first : block.kernel->next, i, x, y);
    }
  }

 private:
  struct Memories {
    memory x;
    memory y;
    memory scratchpad;
  };

  template <typename T>
  static void Grow(AlignedBuffer<T>& buffer, int64_t size) {
    if (buffer.size() < size) buffer = AlignedBuffer<T>(size);
  }

  void Reserve(const Product& product) {
    const dnnl::engine& engine = onednn::CpuEngine();
    memories_[&product] = {memory(product.x, engine, nullptr), memory(product.y, engine, nullptr),
                           memory(product.scratchpad, engine, nullptr)};
    Grow(scratchpad_, static_cast<int64_t>(product.scratchpad.get_size()));
  }

  // As the engine does: the C call builds no containers.
  void Execute(const Panel& panel, const Product& product, int64_t index, char* x, float* y) {
    const PanelShape& shape = panel.kernels->shape;
    const Memories& memories = memories_.find(&product)->second;
    memories.x.set_data_handle(x);
    memories.y.set_data_handle(y);
    memories.scratchpad.set_data_handle(scratchpad_.data());
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, memories.x.get()},
        {DNNL_ARG_WEIGHTS, panel.weights[shape.product(index).weights].get()},
        {DNNL_ARG_DST, memories.y.get()},
        {DNNL_ARG_SCRATCHPAD, memories.scratchpad.get()},
        {DNNL_ARG_BIAS, panel.bias.get()}};
    const bool has_bias = shape.has_bias && index == 0;
    const int count = static_cast<int>(std::size(arguments)) - (has_bias ? 0 : 1);
    const dnnl_status_t status =
        dnnl_primitive_execute(product.primitive.get(), stream_.get(), count, arguments);
    assert(status == dnnl_success);
    static_cast<void>(status);
  }

  dnnl::stream stream_{onednn::CpuEngine()};
  AlignedBuffer<char> scratchpad_;
  AlignedBuffer<float> staged_y_;  // for tiles that are larger than what is left
  std::unordered_map<const Product*, Memories> memories_;
};

}  // namespace

class EngineProducts::Impl {
 public:
  explicit Impl(const Plan& plan)
      : plan_(plan), team_(plan.threads), workers_(static_cast<size_t>(plan.threads)) {}

  absl::Status Pack(int64_t most_tokens) {
    const std::vector<Width> widths = ProductWidths(plan_.model.layer);
    std::vector<Matrix> weights;
    for (const Width& width : widths) weights.emplace_back(width.out, width.in);
    const ComputeMode mode = {.type = plan_.type, .gemm = Gemm::kOneDnn};
    for (int64_t layer = 0; layer < plan_.model.layers; ++layer) {
      for (size_t i = 0; i < widths.size(); ++i) {
        const std::vector<float> bias(static_cast<size_t>(widths[i].out), 0.1f);
        absl::StatusOr<PackedLinear> packed = PackedLinear::Pack(weights[i].view(), bias, mode);
        if (!packed.ok()) return packed.status();
        linears_.push_back(*std::move(packed));
      }
    }
    for (size_t i = 0; i < widths.size(); ++i) {
      operands_.emplace_back(linears_[i].impl(), PaddedRows(most_tokens));
      for (Worker& worker : workers_) worker.Reserve(linears_[i].impl());
    }
    return absl::OkStatus();
  }

  void Run(int64_t tokens) {
    for (size_t i = 0; i < linears_.size(); ++i) {
      Operands& operands = operands_[i % operands_.size()];
      ForBlocks(team_, linears_[i].impl().panels, PaddedRows(tokens), plan_.share_rows,
                [&](int worker, const Panel& panel, const RowBlock& block) {
                  workers_[worker].Run(panel, block, operands);
                });
    }
  }

 private:
  const Plan plan_;
  const ThreadTeam team_;
  std::vector<Worker> workers_;
  std::vector<PackedLinear> linears_;  // [layers, products]
  std::vector<Operands> operands_;     // [products]
};

EngineProducts::EngineProducts(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EngineProducts::~EngineProducts() = default;

absl::StatusOr<std::unique_ptr<EngineProducts>> EngineProducts::Make(const Plan& plan,
                                                                     int64_t most_tokens) {
  auto impl = std::make_unique<Impl>(plan);
  if (absl::Status status = impl->Pack(most_tokens); !status.ok()) return status;
  return std::unique_ptr<EngineProducts>(new EngineProducts(std::move(impl)));
}

void EngineProducts::Run(int64_t tokens) { impl_->Run(tokens); }

}  // namespace attendant::bench
