// Workspace: the threads and buffers of a run.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/compute_type.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/routing.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// The number of rows that a feed-forward block computes at a time. Bounds its memory: a long
// request does not need T x F floats.
inline constexpr int64_t kFeedForwardRows = 1024;

// The numbers of rows that heads compute at a time, and of logits that the MLM head computes at a
// time. The logits are a whole number of panels of a product, so splitting them costs nothing.
inline constexpr int64_t kHeadRows = 256;
inline constexpr int64_t kVocabularyColumns = 3072;

// Returns the width of the widest vector in the model's heads, or E without heads.
int64_t WidestOfHeads(const ModelDescription& model);

// All buffers of a run, allocated once for the largest batch. Each has PaddedRows(max_tokens) rows,
// with these exceptions: `hidden` and `qkv` have a row tile more, so that keys and values can begin
// at any row; `feed_forward`, `gate` and `convolution_taps` have at most kFeedForwardRows rows;
// buffers of heads have at most kHeadRows rows. The content starts
// undefined. Pages that no batch has written take no memory. Not thread-safe.
class Activations {
 public:
  Activations(const ModelDescription& model, int64_t max_tokens);

  // Returns the number of bytes that the constructor will allocate.
  static CheckedSize Bytes(const ModelDescription& model, int64_t max_tokens);

  // [., E], the input and output of a layer.
  MatrixView<float> hidden() { return inputs().Columns(0, hidden_size_); }
  // The same rows as hidden(), with as many columns as the widest source row of queries, keys and
  // values.
  MatrixView<float> inputs() { return view(kHidden); }
  MatrixView<float> qkv() { return view(kQkv); }          // [., InputProjectionWidth]
  MatrixView<float> context() { return view(kContext); }  // [., C]
  // [., E], or [., B] inside a bottleneck: the branch that is added to the residual, or the result
  // of a projection.
  MatrixView<float> branch() { return view(kBranch); }
  MatrixView<float> feed_forward() { return view(kFeedForward); }  // [., F]
  MatrixView<float> gate() { return view(kGate); }                 // [., F]
  // [., W], embeddings or features before their projection.
  MatrixView<float> embedded() { return view(kEmbedded); }
  // For layers with a bottleneck of width B: the rows inside it, the input of queries and keys if
  // values are projected from outside it, and its output [., E].
  MatrixView<float> inner() { return view(kInner); }                 // [., B]
  MatrixView<float> inner_queries() { return view(kInnerQueries); }  // [., B]
  MatrixView<float> outer() { return view(kOuter); }
  // For layers with a convolution: the gathered inputs of some rows, and the result.
  MatrixView<float> convolution_taps() { return view(kConvolutionTaps); }  // [., taps * E]
  MatrixView<float> convolved() { return view(kConvolved); }               // [., E]
  // For layers with a mixture of experts, which compute kFeedForwardRows rows at a time: the chosen
  // experts, and their inputs, which their outputs replace.
  Routing& routing() { return routing_; }
  MatrixView<float> expert_rows() { return view(kExpertRows); }  // [Routing::MostPlaces, E]
  // The input and the output of a linear layer of a head, as wide as the widest vector of the heads
  // and at least E.
  MatrixView<float> head_inputs() { return view(kHeadInputs); }
  MatrixView<float> head_outputs() { return view(kHeadOutputs); }
  // Logits of the MLM head: [., at most kVocabularyColumns].
  MatrixView<float> vocabulary_logits() { return view(kVocabularyLogits); }
  int64_t bytes() const;

 private:
  enum Buffer {
    kHidden,
    kQkv,
    kContext,
    kBranch,
    kFeedForward,
    kGate,
    kEmbedded,
    kInner,
    kInnerQueries,
    kOuter,
    kConvolutionTaps,
    kConvolved,
    kExpertRows,
    kHeadInputs,
    kHeadOutputs,
    kVocabularyLogits,
    kBuffers
  };
  struct Shape {
    CheckedSize rows;
    CheckedSize cols;
  };
  using Shapes = std::array<Shape, kBuffers>;
  struct Matrix {
    int64_t rows;
    int64_t cols;
    AlignedBuffer<float> elements;
  };

  // Buffers that the model does not need have no rows.
  static Shapes ShapesOf(const ModelDescription& model, int64_t max_tokens);
  MatrixView<float> view(Buffer buffer);

  int64_t hidden_size_;
  Routing routing_;
  std::array<Matrix, kBuffers> buffers_;
};

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
