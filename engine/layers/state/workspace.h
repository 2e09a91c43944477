// Workspace: the threads and buffers of a run.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/activations.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns the shape of a layer's attention for the kernels.
AttentionShape AttentionShapeOf(const LayerShape& layer, const ComputeMode& mode);

// Independent of the batch that is computed. Not thread-safe.
struct Workspace {
  // Allocates buffers for batches of up to `capacity` tokens.
  Workspace(const ModelDescription& model, int64_t capacity, int threads,
            const ComputeMode& compute_mode = {});

  // Returns an upper bound on bytes(): the buffers and the kernels' scratch memory.
  static CheckedSize Bytes(const ModelDescription& model, int64_t capacity, int threads,
                           const ComputeMode& mode);
  int64_t bytes() const { return activations.bytes() + gemm.packed_input_bytes() + scratch_bytes; }

  // Reserves the memory of products for the largest batch.
  void Reserve(absl::Span<const ProductUse> uses);

  // Returns one of the model's norms.
  LayerNormWeights norm(int index) const { return norms[index].view(); }

  // Computes target [rows, E] = x W^T + b, where x is the first `rows` rows of
  // activations.embedded().
  void ProjectEmbedded(const PackedLinear& linear, MatrixView<float> target);

  const int64_t max_tokens;
  const ComputeMode mode;
  const ThreadTeam team;
  Activations activations;
  GemmWorkspace gemm;
  AttentionWorkspace attention;
  absl::Span<const NormParameters> norms;  // of the model; not owned
  const int64_t scratch_bytes;             // upper bound on the kernels' scratch memory

  int64_t fully_masked_rows = 0;  // in all layers of the current run
};

}  // namespace attendant
