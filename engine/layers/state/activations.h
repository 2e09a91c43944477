// Activations: the buffers of a run.
#pragma once

#include <cstdint>

#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/state/routing.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

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
// with these exceptions: `hidden` and `qkv` have two row tiles more, so that a batch, keys and
// values can each begin at a tile; `feed_forward`, `gate` and `convolution_taps` have at most
// kFeedForwardRows rows; buffers of heads have at most kHeadRows rows. The content starts
// undefined. Pages that no batch has written take no memory. Not thread-safe.
class Activations {
 public:
  Activations(const ModelDescription& model, int64_t max_tokens);

  // Returns the number of bytes that the constructor will allocate.
  static CheckedSize Bytes(const ModelDescription& model, int64_t max_tokens);

  // [., E], the input and output of a layer.
  MatrixView<float> hidden() { return hidden_.view().Columns(0, hidden_size_); }
  // The same rows as hidden(), with as many columns as the widest source row of queries, keys and
  // values.
  MatrixView<float> inputs() { return hidden_.view(); }
  MatrixView<float> qkv() { return qkv_.view(); }          // [., InputProjectionWidth]
  MatrixView<float> context() { return context_.view(); }  // [., C]
  // [., E], or [., B] inside a bottleneck: the branch that is added to the residual, or the result
  // of a projection.
  MatrixView<float> branch() { return branch_.view(); }
  MatrixView<float> feed_forward() { return feed_forward_.view(); }  // [., F]
  MatrixView<float> gate() { return gate_.view(); }                  // [., F]
  // [., W], embeddings or features before their projection.
  MatrixView<float> embedded() { return embedded_.view(); }
  // For layers with a bottleneck of width B: the rows inside it, the input of queries and keys if
  // values are projected from outside it, and its output.
  MatrixView<float> inner() { return inner_.view(); }                                 // [., B]
  MatrixView<float> inner_queries() { return inner_queries_.view(); }                 // [., B]
  MatrixView<float> outer() { return outer_.cols() > 0 ? outer_.view() : branch(); }  // [., E]
  // For layers with a convolution: the gathered inputs of some rows, and the result.
  MatrixView<float> convolution_taps() { return convolution_taps_.view(); }  // [., taps * E]
  MatrixView<float> convolved() { return convolved_.view(); }                // [., E]
  // For layers with a mixture of experts, which compute kFeedForwardRows rows at a time: the chosen
  // experts, and their inputs, which their outputs replace.
  Routing& routing() { return routing_; }
  MatrixView<float> expert_rows() { return expert_rows_.view(); }  // [Routing::MostPlaces, E]
  // The input and the output of a linear layer of a head, as wide as the widest vector of the heads
  // and at least E.
  MatrixView<float> head_inputs() { return head_inputs_.view(); }
  MatrixView<float> head_outputs() { return head_outputs_.view(); }
  // Logits of the MLM head: [., at most kVocabularyColumns].
  MatrixView<float> vocabulary_logits() { return vocabulary_logits_.view(); }
  int64_t bytes() const;

 private:
  struct Shape;
  class Matrix {
   public:
    explicit Matrix(const Shape& shape);
    MatrixView<float> view() { return {buffer_.data(), rows_, cols_, cols_}; }
    int64_t cols() const { return cols_; }
    int64_t bytes() const { return buffer_.bytes(); }

   private:
    int64_t rows_;
    int64_t cols_;
    AlignedBuffer<float> buffer_;
  };
  struct Shapes;
  explicit Activations(const Shapes& shapes);

  int64_t hidden_size_;
  Matrix hidden_;
  Matrix qkv_;
  Matrix context_;
  Matrix branch_;
  Matrix feed_forward_;
  Matrix gate_;
  Matrix embedded_;
  Matrix inner_;
  Matrix inner_queries_;
  Matrix outer_;
  Matrix convolution_taps_;
  Matrix convolved_;
  Routing routing_;
  Matrix expert_rows_;
  Matrix head_inputs_;
  Matrix head_outputs_;
  Matrix vocabulary_logits_;
};

}  // namespace attendant
