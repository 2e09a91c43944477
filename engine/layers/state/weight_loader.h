// From named tensors to weights that are ready to compute with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/norm/norm.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The parameters of one layer norm. Immutable once loaded.
struct NormParameters {
  std::string name;
  SharedBuffer<float> gamma;
  SharedBuffer<float> beta;  // or of size 0: none
  float epsilon = 0;
  NormKind kind = NormKind::kLayer;

  LayerNormWeights view() const;
  int64_t bytes() const { return gamma.bytes() + beta.bytes(); }
};

// One of the linear layers that are stacked into a fused one: rows of its weight, [out, in].
struct LinearPart {
  std::string name;
  int64_t out;
  std::string scale = {};  // tensor [out] that the model multiplies the output by; empty: none.
                           // Goes into weight and bias, so that it costs nothing in a run
};

// Adds what is not there yet.
void AddProductPlans(absl::Span<const ProductPlan> more, std::vector<ProductPlan>& plans);

// Reads tensors one at a time, in the order in which it is asked, which is that of ListWeights;
// holds none of them longer than it takes to pack it. Errors are those of the source, and of
// packing.
class WeightLoader {
 public:
  // `total_bytes` are all that will be read; `progress` is called after each tensor; linear layers
  // are packed for `mode`. Borrows everything.
  WeightLoader(WeightSource& source, int64_t total_bytes,
               absl::FunctionRef<void(int64_t done, int64_t total)> progress,
               const ComputeMode& mode = {})
      : source_(source), total_bytes_(total_bytes), progress_(progress), mode_(mode) {}

  // "<name>.weight" [out, in] with "<name>.bias" [out] if there is one.
  absl::StatusOr<PackedLinear> ReadLinear(const std::string& name, int64_t out, int64_t in);

  // The parts' weights above each other as one layer [sum of out, in]. A part without bias gets
  // zeros if another has one.
  absl::StatusOr<PackedLinear> ReadFusedLinear(absl::Span<const LinearPart> parts, int64_t in);

  // As PackedLinear::Pack, in the loader's mode: for a layer whose weight is not read as it lies.
  absl::StatusOr<PackedLinear> Pack(MatrixView<const float> weight, absl::Span<const float> bias);

  // The part's bias alone, as its linear layer would have it; zeros without one.
  absl::StatusOr<AlignedBuffer<float>> ReadBias(const LinearPart& part);

  absl::StatusOr<NormParameters> ReadNorm(const std::string& name, int64_t width, NormKind kind,
                                          float epsilon);

  // Weight and bias, each if the source has it; `norm`, if there is one, was read by this name.
  absl::Status ReplaceNorm(NormParameters& norm);
  absl::Status ReplaceNorm(std::optional<NormParameters>& norm) {
    return norm ? ReplaceNorm(*norm) : absl::OkStatus();
  }

  bool Has(const std::string& name) const { return source_.Has(name); }

  // A tensor of `elements` as it is.
  absl::StatusOr<AlignedBuffer<float>> ReadTable(const std::string& name, int64_t elements);

  // The same, or of size 0 if the model has no such tensor.
  absl::StatusOr<AlignedBuffer<float>> ReadOptional(const std::string& name, int64_t elements);

  // Of the layers packed so far, each plan once, in the order of first use.
  const std::vector<ProductPlan>& product_plans() const { return product_plans_; }

  int64_t bytes_read() const { return done_bytes_; }

 private:
  absl::Status Read(absl::string_view name, absl::Span<float> target);

  WeightSource& source_;
  int64_t total_bytes_;
  int64_t done_bytes_ = 0;
  absl::FunctionRef<void(int64_t, int64_t)> progress_;
  ComputeMode mode_;
  std::vector<ProductPlan> product_plans_;
};

}  // namespace attendant
