// WeightLoader: reads named tensors and packs them for the kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/compute_type.h"
#include "engine/base/data_type.h"
#include "engine/base/page_arena.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/norm/norm.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The parameters of one norm. Layers refer to the norms of their model by index (Workspace::norm),
// so that an overlay can share the layers and replace the norms.
struct NormParameters {
  std::string name;
  SharedBuffer<float> gamma;  // includes the 1 of kRmsPlusOne
  SharedBuffer<float> beta;   // may be empty
  float epsilon = 0;
  NormKind kind = NormKind::kLayer;

  LayerNormWeights view() const;
};

// A linear layer that becomes rows [out, in] of a fused one.
struct LinearPart {
  std::string name;
  int64_t out;
  // The name of a tensor [out] by which the model multiplies the output; may be empty. The loader
  // folds it into the weight and the bias, so it costs nothing in a run.
  std::string scale = {};
};

// The rows of a batch that the products of a linear layer compute at a time.
enum class ProductRows {
  kBatch,  // all of them
  // Likewise. The layer is packed for float32 whatever the loader's mode is, and its plan is not
  // added to product_plans().
  kFloat32,
  kChunk,    // kFeedForwardRows (workspace.h)
  kInner,    // likewise; x lies between two layers, see GemmWorkspace::PrepareInner
  kHead,     // kHeadRows (workspace.h)
  kLoading,  // none: the layer is used only while the model is loaded
};

struct ProductUse {
  ProductNeeds needs;
  ProductRows rows;
};

// Appends those of `more` that `plans` does not contain yet.
void AddProductPlans(absl::Span<const ProductPlan> more, std::vector<ProductPlan>& plans);

// Reads tensors one at a time, in the order of the calls, which is the order of ListWeights, and
// frees each after packing it. Keeps the first error of the source or of packing. After it, tables
// are zeros, linear layers are empty, and the source is not read. Not thread-safe.
class WeightLoader {
 public:
  // `total_bytes` is the size of all weights that will be read. `progress` is called after each
  // tensor. Linear layers are packed for `mode` by `threads` threads. `source` and `progress` must
  // outlive the loader.
  WeightLoader(WeightSource& source, int64_t total_bytes,
               absl::FunctionRef<void(int64_t done, int64_t total)> progress,
               const ComputeMode& mode = {}, int threads = 1)
      : source_(source),
        total_bytes_(total_bytes),
        progress_(progress),
        mode_(mode),
        team_(threads) {}

  // OK, or the first error.
  const absl::Status& status() const { return status_; }

  // Reads "<name>.weight" [out, in], and "<name>.bias" [out] if the source has it.
  PackedLinear ReadLinear(const std::string& name, int64_t out, int64_t in,
                          ProductRows use = ProductRows::kBatch) {
    return ReadFusedLinear({{name, out}}, in, use);
  }

  // Reads the parts as one layer [sum of out, in]. If only some parts have a bias, the others get
  // zeros.
  PackedLinear ReadFusedLinear(absl::Span<const LinearPart> parts, int64_t in,
                               ProductRows use = ProductRows::kBatch);

  PackedLinear ReadFloat32Linear(const std::string& name, int64_t out, int64_t in) {
    return ReadLinear(name, out, in, ProductRows::kFloat32);
  }

  // Packs a weight for the loader's mode, as PackedLinear::Pack does. For layers whose weight is
  // computed from tensors of the checkpoint.
  PackedLinear Pack(MatrixView<const float> weight, absl::Span<const float> bias, ProductRows use);

  // Reads only the bias of the part, multiplied by its scale. Returns zeros if it has no bias.
  AlignedBuffer<float> ReadBias(const LinearPart& part);

  NormParameters ReadNorm(const std::string& name, int64_t width, NormKind kind, float epsilon);

  // Returns the index in norms() of the norm `name`. Reads it unless it is already there.
  int AddNorm(const std::string& name, int64_t width, NormKind kind, float epsilon);

  int AddNorm(const std::string& name, int64_t width, const NormShape& of_layer) {
    return AddNorm(name, width, of_layer.kind, of_layer.epsilon);
  }

  // Replaces the weights and biases of norms() that the source has.
  void ReplaceNorms();

  // The norms of the model: those of an overlay's base, and those that AddNorm read.
  std::vector<NormParameters>& norms() { return norms_; }

  const ComputeMode& mode() const { return mode_; }

  bool Has(const std::string& name) const { return source_.Has(name); }

  // Reads a tensor of `elements` elements without packing it.
  AlignedBuffer<float> ReadTable(const std::string& name, int64_t elements);

  // Like ReadTable, but returns elements of `type`: float32, float16 or bfloat16. Rounds if the
  // source has another type.
  AlignedBuffer<char> ReadStoredTable(const std::string& name, int64_t elements, DataType type);

  // Like ReadTable, but returns an empty buffer if the source does not have the tensor.
  AlignedBuffer<float> ReadOptional(const std::string& name, int64_t elements);

  // Makes a table part of the model.
  template <typename T>
  SharedBuffer<T> Keep(AlignedBuffer<T> table) {
    kept_bytes_ += table.bytes();
    return table;
  }

  // The bytes that became part of the model: packed weights, norms and kept tables.
  int64_t kept_bytes() const { return kept_bytes_; }

  // The uses of the layers packed so far; see Workspace::Reserve.
  const std::vector<ProductUse>& product_uses() const { return product_uses_; }

  // The distinct plans of the layers packed so far, in the order of first use.
  const std::vector<ProductPlan>& product_plans() const { return product_plans_; }

 private:
  void Read(const std::string& name, absl::Span<float> target);
  void CountRead(int64_t elements);
  AlignedBuffer<float> ReadGamma(const std::string& name, int64_t width, NormKind kind);

  WeightSource& source_;
  absl::Status status_;
  int64_t total_bytes_;
  int64_t done_bytes_ = 0;
  int64_t kept_bytes_ = 0;
  absl::FunctionRef<void(int64_t, int64_t)> progress_;
  ComputeMode mode_;
  ThreadTeam team_;
  PageArena arena_;
  std::vector<NormParameters> norms_;
  std::vector<ProductUse> product_uses_;
  std::vector<ProductPlan> product_plans_;
};

}  // namespace attendant
