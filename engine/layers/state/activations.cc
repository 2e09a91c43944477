#include "engine/layers/state/activations.h"

#include <algorithm>

#include "engine/kernels/gemm/gemm.h"
#include "engine/model/layer_parts.h"

namespace attendant {

int64_t WidestOfHeads(const ModelDescription& model) {
  const int64_t hidden_size = model.layer.hidden_size;
  int64_t widest = std::max(hidden_size, model.layer.layer_width());
  for (const DenseHeadShape& head : model.dense_heads()) {
    widest = std::max(widest, head.shape->widest(hidden_size));
  }
  return model.vocabulary_head ? std::max(widest, model.vocabulary_head->width) : widest;
}

namespace {

// The number of rows that a mixture of experts routes at a time.
CheckedSize RoutedRows(const ModelDescription& model, int64_t max_tokens) {
  if (model.layer.feed_forward.mixture.experts == 0) return 0;
  return std::min(CheckedSize(max_tokens).RoundedUpTo(kRowTile).value(), kFeedForwardRows);
}

}  // namespace

Activations::Shapes Activations::ShapesOf(const ModelDescription& model, int64_t max_tokens) {
  const LayerShape& layer = model.layer;
  const CheckedSize rows = CheckedSize(max_tokens).RoundedUpTo(kRowTile);
  const CheckedSize input_rows = rows + CheckedSize(kRowTile);
  const CheckedSize feed_forward_rows = std::min(rows.value(), kFeedForwardRows);
  const CheckedSize head_rows = std::min(rows.value(), kHeadRows);
  Shapes shapes = {};
  shapes[kHidden] = {input_rows, layer.widest_input()};
  shapes[kQkv] = {input_rows, InputProjectionWidth(layer)};
  shapes[kContext] = {rows, CheckedSize(layer.attention.heads) * layer.attention.value_width};
  shapes[kBranch] = {rows, layer.projected_width()};
  if (layer.feed_forward.width > 0) {
    shapes[kFeedForward] = {feed_forward_rows, layer.feed_forward.width};
  }
  if (layer.feed_forward.has_gate) shapes[kGate] = shapes[kFeedForward];
  if (const MixtureShape& mixture = layer.feed_forward.mixture; mixture.experts > 0) {
    shapes[kExpertRows] = {Routing::MostPlaces(mixture, feed_forward_rows), layer.inner_width()};
  }
  if (model.embeddings && model.embeddings->projected(layer.hidden_size)) {
    shapes[kEmbedded] = {rows, model.embeddings->projected_from()};
  }
  if (model.patch_embedding && model.patch_embedding->feature_width > 0) {
    shapes[kEmbedded] = {rows, model.patch_embedding->feature_width};
  }
  if (layer.extras.bottleneck.width > 0) {
    shapes[kInner] = {rows, layer.extras.bottleneck.width};
    shapes[kOuter] = {rows, layer.hidden_size};
    if (layer.extras.bottleneck.values_from_outside) shapes[kInnerQueries] = shapes[kInner];
  }
  if (const int64_t taps = layer.extras.convolution.taps; taps > 0) {
    shapes[kConvolutionTaps] = {feed_forward_rows, CheckedSize(taps) * layer.hidden_size};
    shapes[kConvolved] = {rows, layer.hidden_size};
  }
  shapes[kHeadInputs] = shapes[kHeadOutputs] = {head_rows, WidestOfHeads(model)};
  if (model.vocabulary_head) {
    shapes[kVocabularyLogits] = {head_rows, std::min(model.sparse_width(), kVocabularyColumns)};
  }
  return shapes;
}

CheckedSize Activations::Bytes(const ModelDescription& model, int64_t max_tokens) {
  CheckedSize bytes =
      Routing::Bytes(model.layer.feed_forward.mixture, RoutedRows(model, max_tokens));
  for (const Shape& shape : ShapesOf(model, max_tokens)) {
    bytes = bytes + shape.rows * shape.cols * CheckedSize(sizeof(float));
  }
  return bytes;
}

Activations::Activations(const ModelDescription& model, int64_t max_tokens)
    : hidden_size_(model.layer.hidden_size),
      routing_(model.layer.feed_forward.mixture, RoutedRows(model, max_tokens).value()) {
  const Shapes shapes = ShapesOf(model, max_tokens);
  for (int i = 0; i < kBuffers; ++i) {
    const int64_t rows = shapes[i].rows.value(), cols = shapes[i].cols.value();
    buffers_[i] = {rows, cols, AlignedBuffer<float>(rows * cols)};
  }
}

MatrixView<float> Activations::view(Buffer buffer) {
  Matrix& matrix = buffers_[buffer];
  return {matrix.elements.data(), matrix.rows, matrix.cols, matrix.cols};
}

int64_t Activations::bytes() const {
  int64_t sum = routing_.bytes();
  for (const Matrix& matrix : buffers_) sum += matrix.elements.bytes();
  return sum;
}

}  // namespace attendant
