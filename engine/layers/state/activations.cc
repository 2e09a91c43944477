#include "engine/layers/state/activations.h"

#include <algorithm>

#include "engine/kernels/gemm/gemm.h"

namespace attendant {

int64_t WidestOfHeads(const ModelDescription& model) {
  const int64_t hidden_size = model.layer.hidden_size;
  int64_t widest = std::max(hidden_size, model.layer.layer_width());
  for (const DenseHeadShape& head : model.dense_heads()) {
    widest = std::max(widest, head.shape->widest(hidden_size));
  }
  return model.vocabulary_head ? std::max(widest, model.vocabulary_head->width) : widest;
}

struct Activations::Shape {
  CheckedSize rows;
  CheckedSize cols;

  CheckedSize bytes() const { return rows * cols * CheckedSize(sizeof(float)); }
};

struct Activations::Shapes {
  Shapes(const ModelDescription& model, int64_t max_tokens) {
    const LayerShape& layer = model.layer;
    const CheckedSize rows = CheckedSize(max_tokens).RoundedUpTo(kRowTile);
    const CheckedSize heads = layer.attention.heads;
    const CheckedSize input_rows = rows + CheckedSize(2 * kRowTile);
    hidden_size = layer.hidden_size;
    hidden = {input_rows, layer.widest_input()};
    branch = {rows, layer.projected_width()};
    qkv = {input_rows, InputProjectionWidth(layer)};
    context = {rows, heads * layer.attention.value_width};
    if (layer.feed_forward.width > 0) {
      feed_forward = {std::min(rows.value(), kFeedForwardRows), layer.feed_forward.width};
    }
    if (layer.feed_forward.has_gate) gate = feed_forward;
    if (model.embeddings && model.embeddings->projected(layer.hidden_size)) {
      embedded = {rows, model.embeddings->projected_from()};
    }
    if (layer.extras.bottleneck.width > 0) {
      inner = {rows, layer.extras.bottleneck.width};
      outer = {rows, layer.hidden_size};
      if (layer.extras.bottleneck.values_from_outside) inner_queries = inner;
    }
    if (const int64_t taps = layer.extras.convolution.taps; taps > 0) {
      convolution_taps = {std::min(rows.value(), kFeedForwardRows),
                          CheckedSize(taps) * layer.hidden_size};
      convolved = {rows, layer.hidden_size};
    }
    mixture = layer.feed_forward.mixture;
    routed_rows = mixture.experts > 0 ? std::min(rows.value(), kFeedForwardRows) : 0;
    if (mixture.experts > 0) {
      expert_rows = {Routing::MostPlaces(mixture, routed_rows), layer.inner_width()};
    }
    if (model.patch_embedding && model.patch_embedding->feature_width > 0) {
      embedded = {rows, model.patch_embedding->feature_width};
    }
    const CheckedSize some = std::min(rows.value(), kHeadRows);
    head_inputs = head_outputs = {some, WidestOfHeads(model)};
    if (model.vocabulary_head) {
      vocabulary_logits = {some, std::min(model.sparse_width(), kVocabularyColumns)};
    }
  }

  int64_t hidden_size;
  MixtureShape mixture;
  int64_t routed_rows;
  Shape hidden, qkv, context, branch, feed_forward, gate, embedded, inner, inner_queries, outer,
      convolution_taps, convolved, expert_rows, head_inputs, head_outputs, vocabulary_logits;
};

CheckedSize Activations::Bytes(const ModelDescription& model, int64_t max_tokens) {
  const Shapes shapes(model, max_tokens);
  return shapes.hidden.bytes() + shapes.qkv.bytes() + shapes.context.bytes() +
         shapes.branch.bytes() + shapes.feed_forward.bytes() + shapes.gate.bytes() +
         shapes.embedded.bytes() + shapes.inner.bytes() + shapes.inner_queries.bytes() +
         shapes.outer.bytes() + shapes.convolution_taps.bytes() + shapes.convolved.bytes() +
         Routing::Bytes(shapes.mixture, shapes.routed_rows) + shapes.expert_rows.bytes() +
         shapes.head_inputs.bytes() + shapes.head_outputs.bytes() +
         shapes.vocabulary_logits.bytes();
}

Activations::Matrix::Matrix(const Shape& shape)
    : rows_(shape.rows.value()), cols_(shape.cols.value()), buffer_(rows_ * cols_) {}

Activations::Activations(const ModelDescription& model, int64_t max_tokens)
    : Activations(Shapes(model, max_tokens)) {}

Activations::Activations(const Shapes& shapes)
    : hidden_size_(shapes.hidden_size),
      hidden_(shapes.hidden),
      qkv_(shapes.qkv),
      context_(shapes.context),
      branch_(shapes.branch),
      feed_forward_(shapes.feed_forward),
      gate_(shapes.gate),
      embedded_(shapes.embedded),
      inner_(shapes.inner),
      inner_queries_(shapes.inner_queries),
      outer_(shapes.outer),
      convolution_taps_(shapes.convolution_taps),
      convolved_(shapes.convolved),
      routing_(shapes.mixture, shapes.routed_rows),
      expert_rows_(shapes.expert_rows),
      head_inputs_(shapes.head_inputs),
      head_outputs_(shapes.head_outputs),
      vocabulary_logits_(shapes.vocabulary_logits) {}

int64_t Activations::bytes() const {
  return hidden_.bytes() + qkv_.bytes() + context_.bytes() + branch_.bytes() +
         feed_forward_.bytes() + gate_.bytes() + embedded_.bytes() + inner_.bytes() +
         inner_queries_.bytes() + outer_.bytes() + convolution_taps_.bytes() + convolved_.bytes() +
         routing_.bytes() + expert_rows_.bytes() + head_inputs_.bytes() + head_outputs_.bytes() +
         vocabulary_logits_.bytes();
}

}  // namespace attendant
