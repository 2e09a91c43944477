#include "tests/bench/gemm_bound.h"

#include <omp.h>

#include <algorithm>
#include <functional>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <set>

#include "engine/base/aligned_buffer.h"
#include "engine/base/rounding.h"
#include "engine/base/thread_team.h"

namespace attendant::bench {
namespace {

using dnnl::memory;
using DnnlType = memory::data_type;

constexpr int64_t kRowTileRows = 16;

// Never destroyed, because a static GemmBound may outlive other static variables.
const dnnl::engine& Cpu() {
  static const auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

DnnlType OperandType(ComputeType type) {
  switch (type) {
    case ComputeType::kF32:
      return DnnlType::f32;
    case ComputeType::kBf16x3:
    case ComputeType::kBf16:
      return DnnlType::bf16;
    case ComputeType::kInt8:
      return DnnlType::s8;
  }
  return DnnlType::undef;
}

int Repetitions(ComputeType type) { return type == ComputeType::kBf16x3 ? 3 : 1; }

DnnlType ResultType(ComputeType type) {
  return type == ComputeType::kBf16 ? DnnlType::bf16 : DnnlType::f32;
}

memory::desc Plain(int64_t rows, int64_t cols, DnnlType type) {
  return {{rows, cols}, type, memory::format_tag::ab};
}

// `weight` is a packed layout, or format_tag::any.
dnnl::matmul::primitive_desc Describe(ComputeType type, int64_t rows, Width width,
                                      const memory::desc& weight) {
  const memory::desc x = Plain(rows, width.in, OperandType(type));
  const memory::desc y = Plain(rows, width.out, ResultType(type));
  dnnl::primitive_attr attributes;  // threads that share a primitive bring their own scratchpads
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {Cpu(), x, weight, y, attributes};
#else
  return {{x, weight, y}, attributes, Cpu()};
#endif
}

// Returns random numbers, [rows, cols] of `type`, in `layout`.
memory FilledMemory(int64_t rows, int64_t cols, DnnlType type, const memory::desc& layout) {
  AlignedBuffer<float> values(rows * cols);
  for (int64_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 255 - 127);
  memory source(Plain(rows, cols, DnnlType::f32), Cpu(), values.data());
  memory converted(Plain(rows, cols, type), Cpu());
  memory packed(layout, Cpu());
  dnnl::stream stream(Cpu());
  dnnl::reorder(source, converted).execute(stream, source, converted);
  dnnl::reorder(converted, packed).execute(stream, converted, packed);
  stream.wait();
  return packed;
}

// One product at one number of rows, with the operands of each worker.
struct Product {
  struct Operands {
    memory x;
    memory y;
    memory scratchpad;
  };
  dnnl::matmul primitive;
  std::vector<Operands> operands;  // [workers]
};

}  // namespace

class GemmBound::Impl {
 public:
  Impl(const Plan& plan, const std::vector<int64_t>& batch_tokens)
      : plan_(plan), team_(plan.threads), workers_(plan.split == Split::kRows ? plan.threads : 1) {
    std::set<int64_t, std::greater<>> sizes;
    for (const int64_t tokens : batch_tokens) sizes.insert(RowsOf(tokens));
    PackWeights(*sizes.begin());
    for (const int64_t rows : sizes) {
      for (size_t i = 0; i < plan_.widths.size(); ++i)
        products_[rows].push_back(MakeProduct(rows, i));
    }
  }

  void Run(int64_t tokens) {
    const std::vector<Product>& products = products_.at(RowsOf(tokens));
    if (workers_ == 1) {
      // An earlier team has told this thread to use one thread.
      omp_set_num_threads(team_.size());
      return RunShare(products, 0);
    }
    team_.ParallelFor(workers_, [&](int, int64_t share) { RunShare(products, share); });
  }

 private:
  // The operands of one worker.
  int64_t RowsOf(int64_t tokens) const {
    const int64_t padded = RoundUp(tokens, plan_.row_multiple);
    return RoundUp(CeilDivide(padded, workers_), kRowTileRows);
  }

  // A primitive that one thread runs must be made by one thread.
  dnnl::matmul::primitive_desc DescribeOnItsThreads(int64_t rows, Width width,
                                                    const memory::desc& weight) {
    omp_set_num_threads(plan_.split == Split::kRows ? 1 : plan_.threads);
    return Describe(plan_.type, rows, width, weight);
  }

  void PackWeights(int64_t rows) {
    const DnnlType type = OperandType(plan_.type);
    std::vector<memory::desc> layouts;
    for (const Width& width : plan_.widths) {
      const memory::desc any({width.in, width.out}, type, memory::format_tag::any);
      layouts.push_back(DescribeOnItsThreads(rows, width, any).weights_desc());
      x_.emplace_back();
      y_.emplace_back();
      for (int worker = 0; worker < workers_; ++worker) {
        x_.back().push_back(FilledMemory(rows, width.in, type, Plain(rows, width.in, type)));
        y_.back().emplace_back(Plain(rows, width.out, ResultType(plan_.type)), Cpu());
      }
    }
    for (int64_t layer = 0; layer < plan_.layers; ++layer) {
      for (size_t i = 0; i < layouts.size(); ++i) {
        weights_.push_back(FilledMemory(plan_.widths[i].in, plan_.widths[i].out, type, layouts[i]));
      }
    }
  }

  // Smaller batches use the first rows of the same operands.
  Product MakeProduct(int64_t rows, size_t index) {
    const dnnl::matmul::primitive_desc descriptor =
        DescribeOnItsThreads(rows, plan_.widths[index], weights_[index].get_desc());
    Product product{dnnl::matmul(descriptor), {}};
    for (int worker = 0; worker < workers_; ++worker) {
      product.operands.push_back(
          {memory(descriptor.src_desc(), Cpu(), x_[index][worker].get_data_handle()),
           memory(descriptor.dst_desc(), Cpu(), y_[index][worker].get_data_handle()),
           memory(descriptor.scratchpad_desc(), Cpu())});
    }
    return product;
  }

  void RunShare(const std::vector<Product>& products, int64_t share) {
    dnnl::stream stream(Cpu());
    for (size_t i = 0; i < weights_.size(); ++i) {
      const Product& product = products[i % products.size()];
      const Product::Operands& operands = product.operands[share];
      for (int repetition = 0; repetition < Repetitions(plan_.type); ++repetition) {
        product.primitive.execute(stream, {{DNNL_ARG_SRC, operands.x},
                                           {DNNL_ARG_WEIGHTS, weights_[i]},
                                           {DNNL_ARG_DST, operands.y},
                                           {DNNL_ARG_SCRATCHPAD, operands.scratchpad}});
      }
    }
    stream.wait();
  }

  const Plan plan_;
  const ThreadTeam team_;
  const int workers_;
  std::vector<memory> weights_;                       // [layers, products]
  std::vector<std::vector<memory>> x_;                // [products, workers]
  std::vector<std::vector<memory>> y_;                // [products, workers]
  std::map<int64_t, std::vector<Product>> products_;  // by rows
};

GemmBound::GemmBound(const Plan& plan, const std::vector<int64_t>& batch_tokens)
    : impl_(std::make_unique<Impl>(plan, batch_tokens)) {}
GemmBound::~GemmBound() = default;
void GemmBound::Run(int64_t tokens) { impl_->Run(tokens); }

}  // namespace attendant::bench
