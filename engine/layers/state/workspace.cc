#include "engine/layers/state/workspace.h"

#include <algorithm>

#include "engine/kernels/row_tiles.h"
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

namespace {

// Upper bounds on the kernels' scratch memory, which does not grow with the batch. Per worker,
// products need a few hundred rows of x and y, and attention a block of keys, values and scores.
constexpr int64_t kScratchRows = 512;
constexpr int64_t kScratchFloor = int64_t{1} << 20;

CheckedSize ScratchBytes(const ModelDescription& model, int threads) {
  const LayerShape& layer = model.layer;
  const CheckedSize widths =
      CheckedSize(layer.attention.heads) * (CheckedSize(2) * layer.attention.key_width) +
      CheckedSize(layer.attention.heads) * layer.attention.value_width +
      layer.attention.value_width + layer.attention.linformer.keys + layer.widest_input() +
      layer.projected_width() + layer.feed_forward.width +
      (model.vocabulary_head ? kVocabularyColumns : 0) + CheckedSize(2) * WidestOfHeads(model) +
      CheckedSize(layer.extras.convolution.taps) * layer.hidden_size;
  return CheckedSize(threads) *
         (CheckedSize(kScratchFloor) +
          CheckedSize(kScratchRows) *
              (widths + CheckedSize(2) * layer.relative_positions.position_rows()) *
              CheckedSize(sizeof(float)));
}

// Returns the size of the largest packed GEMM input, including the scale of each int8 row, plus the
// packed input of the feed-forward block's second product, which exists at the same time.
CheckedSize PackedInputBytes(const ModelDescription& model, int64_t capacity,
                             const ComputeMode& mode) {
  if (mode.type == ComputeType::kF32) return 0;
  const LayerShape& layer = model.layer;
  const CheckedSize rows = CheckedSize(capacity).RoundedUpTo(kRowTile);
  const CheckedSize chunk = std::min(rows.value(), kFeedForwardRows);
  CheckedSize largest = rows * CheckedSize(std::max(layer.widest_input(), layer.inner_width()));
  if (layer.attention.has_output_projection) {
    largest =
        Larger(largest, rows * CheckedSize(layer.attention.heads) * layer.attention.value_width);
  }
  largest = Larger(largest, chunk * CheckedSize(layer.extras.convolution.taps) *
                                (layer.hidden_size / layer.extras.convolution.groups));
  if (model.embeddings && model.embeddings->projected(layer.hidden_size)) {
    largest = Larger(largest, rows * CheckedSize(model.embeddings->projected_from()));
  }
  if (model.vocabulary_head) {
    const CheckedSize some = std::min(rows.value(), kHeadRows);
    largest = Larger(largest,
                     some * CheckedSize(std::max(layer.hidden_size, model.vocabulary_head->width)));
  }
  const CheckedSize inner = chunk * CheckedSize(layer.feed_forward.width);
  CheckedSize scales = 0;
  if (mode.type == ComputeType::kInt8) {
    scales = layer.feed_forward.width > 0 ? rows + chunk : rows;
  }
  return (largest + inner) * InputElementBytes(mode) + scales * CheckedSize(sizeof(float));
}

}  // namespace

AttentionShape AttentionShapeOf(const LayerShape& layer, const ComputeMode& mode) {
  return {layer.attention, layer.relative_positions.position_rows(), mode};
}

Workspace::Workspace(const ModelDescription& model, int64_t capacity, int threads,
                     const ComputeMode& compute_mode)
    : max_tokens(capacity),
      mode(compute_mode),
      team(threads),
      activations(model, capacity),
      gemm(team),
      attention(threads, AttentionShapeOf(model.layer, mode), capacity),
      scratch_bytes(ScratchBytes(model, threads).value()) {}

CheckedSize Workspace::Bytes(const ModelDescription& model, int64_t capacity, int threads,
                             const ComputeMode& mode) {
  return Activations::Bytes(model, capacity) + PackedInputBytes(model, capacity, mode) +
         ScratchBytes(model, threads);
}

void Workspace::Reserve(absl::Span<const ProductUse> uses) {
  const int64_t all = PaddedRows(max_tokens);
  for (const auto& [needs, use] : uses) {
    const bool is_inner = use == ProductRows::kInner;
    int64_t rows = all;
    if (is_inner || use == ProductRows::kChunk) rows = std::min(kFeedForwardRows, all);
    if (use == ProductRows::kHead) rows = std::min(kHeadRows, all);
    if (is_inner) {
      gemm.ReserveInner(needs, rows);
    } else {
      gemm.Reserve(needs, rows);
    }
  }
}

void Workspace::ProjectEmbedded(const PackedLinear& linear, MatrixView<float> target) {
  gemm.Apply(linear, activations.embedded().Rows(0, target.rows), target);
}

}  // namespace attendant
