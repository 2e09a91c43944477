// Workspace: the threads and the memory that an instance computes in.
#pragma once

#include <cstdint>

#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/activations.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns the shape that the attention kernels take for a layer.
AttentionShape AttentionShapeOf(const LayerShape& layer, const ComputeMode& mode);

// Knows nothing of the batch that is computed. Not thread-safe.
struct Workspace {
  // Allocates for batches of up to `capacity` tokens.
  Workspace(const ModelDescription& model, int64_t capacity, int threads,
            const ComputeMode& compute_mode = {});

  // Returns the bytes of the buffers, and the largest number of bytes of the kernels' scratch
  // memory.
  static CheckedSize Bytes(const ModelDescription& model, int64_t capacity, int threads,
                           const ComputeMode& mode);
  int64_t bytes() const { return activations.bytes() + gemm.operand_bytes() + scratch_bytes; }

  // Computes y = activation(x W^T + b).
  void Apply(const LinearColumns& linear, const LinearInput& x, const LinearOutput& y,
             Activation activation = Activation::kIdentity);

  // Computes target [rows, E] = x W^T + b, where x is the first `rows` rows of
  // activations.embedded().
  void ProjectEmbedded(const PackedLinear& linear, MatrixView<float> target);

  // Returns the PaddedRows(count) rows of key_input() and value_input() (encoder.h) from `first`
  // on, after zeroing those beyond the first `count`.
  MatrixView<float> CrossKvInput(int64_t first, int64_t count);

  const int64_t max_tokens;
  const ComputeMode mode;
  const ThreadTeam team;
  Activations activations;
  GemmWorkspace gemm;
  AttentionWorkspace attention;
  const int64_t scratch_bytes;  // the kernels' scratch memory, at most

  int64_t fully_masked_rows = 0;  // counted by the attention, since the run began
};

}  // namespace attendant
