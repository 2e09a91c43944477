// The buffers that a run computes in.
#pragma once

#include <cstdint>

#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/state/routing.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The number of rows that the feed-forward block computes at a time, so that a long request does
// not need T x F floats.
inline constexpr int64_t kFeedForwardRows = 1024;

// The number of rows that heads work on at a time, and that of words of the vocabulary that the
// vocabulary head weighs at a time. The words are whole panels of a product, so that cutting them
// there costs nothing.
inline constexpr int64_t kHeadRows = 256;
inline constexpr int64_t kVocabularyColumns = 3072;

// Returns the width of the widest vector that a head of the model works on, or without a head those
// of hidden states.
int64_t WidestOfHeads(const ModelDescription& model);

// Every buffer of a run, allocated once for the largest batch. Each has PaddedRows(max_tokens)
// rows. `hidden` and `qkv` have two tiles more, so that a batch, keys and values can lie in them
// PaddedRows apart; `feed_forward`, `gate` and `convolution_taps` have at most kFeedForwardRows
// rows, and those of heads at most kHeadRows. The content is undefined at
// first; pages that no batch has reached take no memory.
class Activations {
 public:
  Activations(const ModelDescription& model, int64_t max_tokens);

  // Returns the number of bytes that the constructor will allocate.
  static CheckedSize Bytes(const ModelDescription& model, int64_t max_tokens);

  // [., E], the input and output of a layer.
  MatrixView<float> hidden() { return hidden_.view().Columns(0, hidden_size_); }
  // The rows of hidden(), as wide as the widest of the inputs that queries, keys and values are
  // made of.
  MatrixView<float> inputs() { return hidden_.view(); }
  MatrixView<float> qkv() { return qkv_.view(); }          // [., InputProjectionWidth]
  MatrixView<float> context() { return context_.view(); }  // [., C]
  // [., E], or [., B] in a bottleneck: the branch that is added to the residual, or the result of a
  // projection.
  MatrixView<float> branch() { return branch_.view(); }
  MatrixView<float> feed_forward() { return feed_forward_.view(); }  // [., F]
  MatrixView<float> gate() { return gate_.view(); }                  // [., F], next to feed_forward
  // [., W], embeddings or features before their projection.
  MatrixView<float> embedded() { return embedded_.view(); }
  // For layers with a bottleneck of width B: the rows inside it; the input of queries and keys if
  // values come from outside; and the output of the bottleneck.
  MatrixView<float> inner() { return inner_.view(); }                                 // [., B]
  MatrixView<float> inner_queries() { return inner_queries_.view(); }                 // [., B]
  MatrixView<float> outer() { return outer_.cols() > 0 ? outer_.view() : branch(); }  // [., E]
  // For layers with a convolution: the gathered inputs of some rows, and the result.
  MatrixView<float> convolution_taps() { return convolution_taps_.view(); }  // [., taps * E]
  MatrixView<float> convolved() { return convolved_.view(); }                // [., E]
  // For layers with a mixture of experts, for kFeedForwardRows rows at a time: the choice of
  // experts, and the input and output of each of them.
  Routing& routing() { return routing_; }
  MatrixView<float> expert_rows() { return expert_rows_.view(); }  // [Routing::MostPlaces, E]
  // As wide as the widest vector of a head, and as E: what a linear layer of a head takes, and what
  // it makes of it. And the logits of some words.
  MatrixView<float> head_inputs() { return head_inputs_.view(); }
  MatrixView<float> head_outputs() { return head_outputs_.view(); }
  MatrixView<float> vocabulary_logits() { return vocabulary_logits_.view(); }  // [., words]
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
