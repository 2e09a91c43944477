// The loading of named tensors as weights that are ready to compute with.
#pragma once

#include <cstdint>
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
#include "engine/base/data_type.h"
#include "engine/base/page_arena.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/norm/norm.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The parameters of one norm. Immutable once loaded.
struct NormParameters {
  std::string name;
  SharedBuffer<float> gamma;  // with the 1 of kRmsPlusOne added
  SharedBuffer<float> beta;   // empty if there is none
  float epsilon = 0;
  NormKind kind = NormKind::kLayer;

  LayerNormWeights view() const;
  int64_t bytes() const { return gamma.bytes() + beta.bytes(); }
};

// One of several linear layers that are stacked into a fused one: rows of its weight, [out, in].
struct LinearPart {
  std::string name;
  int64_t out;
  // A tensor [out] by which the model multiplies the output; empty if there is none. It is
  // multiplied into weight and bias, so that it costs nothing in a run.
  std::string scale = {};
};

// Adds the plans that are not in `plans` yet.
void AddProductPlans(absl::Span<const ProductPlan> more, std::vector<ProductPlan>& plans);

// A loader that reads tensors one at a time in the order of the calls, which is that of
// ListWeights, and keeps none of them after it is packed. Errors are those of the source and of
// packing. Not thread-safe.
class WeightLoader {
 public:
  // `total_bytes` is the size of everything that will be read; `progress` is called after each
  // tensor; linear layers are packed for `mode`, by `threads` threads. Borrows `source` and
  // `progress`, which must outlive this.
  WeightLoader(WeightSource& source, int64_t total_bytes,
               absl::FunctionRef<void(int64_t done, int64_t total)> progress,
               const ComputeMode& mode = {}, int threads = 1)
      : source_(source),
        total_bytes_(total_bytes),
        progress_(progress),
        mode_(mode),
        team_(threads) {}

  // Reads "<name>.weight" [out, in], and "<name>.bias" [out] if there is one.
  absl::StatusOr<PackedLinear> ReadLinear(const std::string& name, int64_t out, int64_t in);

  // Reads the weights of the parts, stacked as one layer [sum of out, in]. A part without bias gets
  // zeros if another part has a bias.
  absl::StatusOr<PackedLinear> ReadFusedLinear(absl::Span<const LinearPart> parts, int64_t in);

  // Reads such a layer and packs it for float32, whatever the loader's mode is. Its plan is not
  // among product_plans().
  absl::StatusOr<PackedLinear> ReadFloat32Linear(const std::string& name, int64_t out, int64_t in);

  // Packs as PackedLinear::Pack does, for the loader's mode. For layers whose weight is not stored
  // in the checkpoint as it is used.
  absl::StatusOr<PackedLinear> Pack(MatrixView<const float> weight, absl::Span<const float> bias);

  // Reads the bias of the part alone, multiplied by its scale; zeros if it has none.
  absl::StatusOr<AlignedBuffer<float>> ReadBias(const LinearPart& part);

  absl::StatusOr<NormParameters> ReadNorm(const std::string& name, int64_t width, NormKind kind,
                                          float epsilon);

  // Replaces the weight and the bias of a norm by those of the source, each if the source has it.
  // The name is that by which `norm` was read.
  absl::Status ReplaceNorm(NormParameters& norm);

  bool Has(const std::string& name) const { return source_.Has(name); }

  // Reads a tensor of `elements` elements without packing it.
  absl::StatusOr<AlignedBuffer<float>> ReadTable(const std::string& name, int64_t elements);

  // Reads such a tensor as elements of `type`, float32, float16 or bfloat16: rounded to it, unless
  // the source holds it so.
  absl::StatusOr<AlignedBuffer<char>> ReadStoredTable(const std::string& name, int64_t elements,
                                                      DataType type);

  // Reads such a tensor; returns an empty buffer if the model has none of that name.
  absl::StatusOr<AlignedBuffer<float>> ReadOptional(const std::string& name, int64_t elements);

  // Returns the plans of the layers packed so far, each once, in the order of first use.
  const std::vector<ProductPlan>& product_plans() const { return product_plans_; }

  int64_t bytes_read() const { return done_bytes_; }

 private:
  absl::Status Read(absl::string_view name, absl::Span<float> target);
  void CountRead(int64_t elements);
  absl::StatusOr<AlignedBuffer<float>> ReadGamma(const std::string& name, int64_t width,
                                                 NormKind kind);

  WeightSource& source_;
  int64_t total_bytes_;
  int64_t done_bytes_ = 0;
  absl::FunctionRef<void(int64_t, int64_t)> progress_;
  ComputeMode mode_;
  ThreadTeam team_;
  PageArena arena_;
  std::vector<ProductPlan> product_plans_;
};

}  // namespace attendant
