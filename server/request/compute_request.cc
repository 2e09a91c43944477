#include "server/request/compute_request.h"

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/layers/pooling.h"

namespace attendant::server {
namespace {

// Upper bound of what protobuf adds to the data of one tensor (tags, lengths, dtype, shape).
constexpr int64_t kTensorHeadBytes = 96;

// Upper bound of the bytes that encode a sequence's number of weighted words.
constexpr int64_t kSparseCountBytes = 5;
constexpr int64_t kLengthBytes = 5;

// Bytes of the dense probabilities of one layer: [H, length, keys] for each sequence.
CheckedSize ProbabilityScratchBytes(const ComputeRequest& request) {
  CheckedSize sum;
  for (int64_t b = 0; b < request.layout.sequences; ++b) {
    sum = sum + ByteCount({request.description().layer.attention.heads, request.pairs(b)},
                          DataType::kFloat32);
  }
  return sum;
}

}  // namespace

BatchKey ComputeRequest::key() const {
  const AttendStage* stage = std::get_if<AttendStage>(&operation);
  // Stages are the last alternative, so that each has a number that no other operation has.
  const size_t kind = operation.index() + (stage ? static_cast<size_t>(*stage) : 0);
  // Rows are projected for a whole batch, values from the rows of the keys or from others.
  const CrossKvRows* projected = cross_kv_rows();
  const int32_t inputs = !attends_cross_kv() ? 0 : projected && projected->values ? 2 : 1;
  return {span.model.get(), static_cast<int32_t>(kind) * 3 + inputs, span.first_layer, span.layers};
}

LayerRange ComputeRequest::range() const {
  CostedPart part = registration() ? CostedPart::kInputs : CostedPart::kWhole;
  if (const AttendStage* stage = std::get_if<AttendStage>(&operation)) {
    part = *stage == AttendStage::kContext ? CostedPart::kContext : CostedPart::kProjected;
  }
  return {span.first_layer, span.layers, part};
}

double ComputeRequest::PredictSeconds(const SpanCost& cost) const {
  double seconds = 0;
  for (int64_t b = 0; b < layout.sequences; ++b) seconds += PredictSeconds(b, cost);
  return seconds;
}

double ComputeRequest::PredictSeconds(int64_t sequence, const SpanCost& cost) const {
  if (registration()) return cost.OfSequence(key_layout().tokens(), 0);
  return cost.OfSequence(layout.length(sequence), key_layout().length(key_sequence(sequence)));
}

const TokenLayout& ComputeRequest::key_layout() const {
  if (registered()) return registered()->origin().layout;
  return cross_kv_rows() ? cross_kv_rows()->layout : layout;
}

bool ComputeRequest::AppendSelectedRows(int64_t first_row, std::vector<int32_t>& rows) const {
  const int64_t last_layer = span.first_layer + span.layers - 1;
  if (absl::c_linear_search(outputs.intermediate_layers, last_layer)) return false;
  if (outputs.token_vectors || outputs.sparse) return false;
  if (outputs.hidden_states ? !outputs.hidden_tokens : !outputs.pooled) return false;
  const size_t begin = rows.size();
  if (outputs.pooled && !AppendRowsToPool(first_row, rows)) return false;
  if (!outputs.hidden_tokens) return true;
  for (const int32_t token : *outputs.hidden_tokens) {
    if (token >= 0) rows.push_back(static_cast<int32_t>(first_row) + token);
  }
  std::sort(rows.begin() + begin, rows.end());
  rows.erase(std::unique(rows.begin() + begin, rows.end()), rows.end());
  return true;
}

bool ComputeRequest::AppendRowsToPool(int64_t first_row, std::vector<int32_t>& rows) const {
  absl::Span<const PoolingMode> modes = absl::MakeConstSpan(&outputs.pooled->mode, 1);
  if (outputs.pooled->head == HeadKind::kPooling) modes = description().pooling->modes;
  if (outputs.pooled->head == HeadKind::kClassifier) modes = description().classifier->modes;
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const TokenRange own = PooledTokens(b);
    if (!AppendPooledRows(modes, first_row + layout.cu_seqlens[b] + own.first, own.count, rows)) {
      return false;
    }
  }
  return true;
}

TokenRange ComputeRequest::PooledTokens(int64_t sequence) const {
  const int64_t length = layout.length(sequence);
  const int64_t skipped = outputs.pooled->PromptOf(sequence, length);
  TokenRange range{skipped, length - skipped};
  const KeptIds* ids = std::get_if<KeptIds>(&input);
  const HeadKind head = outputs.pooled->head;
  const bool is_classifier = head == HeadKind::kClassifier;
  if (ids == nullptr || (!is_classifier && head != HeadKind::kPooling)) return range;
  range.count = TokensToEnd(is_classifier ? *description().classifier : *description().pooling,
                            absl::MakeConstSpan(ids->words)
                                .subspan(layout.cu_seqlens[sequence] + range.first, range.count));
  return range;
}

ChunkTokens ComputeRequest::chunk_tokens() const {
  const KeptIds* ids = std::get_if<KeptIds>(&input);
  const int64_t all = layout.tokens();
  return {all, ids == nullptr ? all : CountedTokens(*ids, *description().embeddings)};
}

int64_t ComputeRequest::width() const {
  const AttendStage* stage = std::get_if<AttendStage>(&operation);
  if (stage == nullptr) return description().layer.layer_width();
  return *stage == AttendStage::kContext ? layer_shape().context_width()
                                         : layer_shape().attention_width();
}

std::vector<int64_t> ComputeRequest::RowsShape(int64_t width) const {
  if (layout.packed) return {layout.rows, width};
  if (layout.sequence_first) return {layout.padded_length, layout.sequences, width};
  return {layout.sequences, layout.padded_length, width};
}

std::vector<int64_t> ComputeRequest::scores_shape() const {
  return {layout.sequences, description().layer.attention.heads, layout.padded_length,
          key_layout().padded_length};
}

std::vector<int64_t> ComputeRequest::ProbabilitiesShape(int64_t layer) const {
  const int64_t queries = layout.padded_length;
  const int64_t all_keys = key_layout().padded_length;
  const AttentionOutput& attention = outputs.attention;
  if (attention.form == v1::HEAD_MEAN) return {layout.sequences, queries, all_keys};
  return {layout.sequences, description().heads_at(layer), queries,
          attention.form == v1::TOP_KEYS ? attention.top_k : all_keys};
}

int64_t ComputeRequest::pooled_width() const {
  if (outputs.pooled->head == HeadKind::kPooling) return description().pooling->width(width());
  if (outputs.pooled->head == HeadKind::kClassifier) {
    return description().classifier->width(width());
  }
  return width();
}

int64_t ComputeRequest::token_vectors_width() const {
  return description().token_head->width(width());
}

std::vector<OutputTensor> ComputeRequest::output_tensors() const {
  std::vector<OutputTensor> tensors;
  const auto add = [&](OutputKind kind, std::vector<int64_t> shape, int64_t layer = 0) {
    const DataType dtype = kind == OutputKind::kAttentionKeys ? DataType::kInt32 : outputs.dtype;
    tensors.push_back({kind, ResponseTensor(std::move(shape), dtype), layer});
  };
  if (outputs.hidden_states && outputs.hidden_tokens) {
    add(OutputKind::kHiddenStates, {std::ssize(*outputs.hidden_tokens), width()});
  } else if (outputs.hidden_states) {
    add(OutputKind::kHiddenStates, RowsShape(width()));
  }
  for (const int64_t layer : outputs.intermediate_layers) {
    add(OutputKind::kIntermediate, RowsShape(width()), layer);
  }
  const AttentionOutput& attention = outputs.attention;
  for (const int64_t layer : attention.layers) {
    const bool has_keys = attention.probabilities && attention.form == v1::TOP_KEYS;
    if (attention.probabilities) add(OutputKind::kProbabilities, ProbabilitiesShape(layer), layer);
    if (has_keys) add(OutputKind::kAttentionKeys, ProbabilitiesShape(layer), layer);
    if (!attention.weighted_values) continue;
    const int64_t length = layout.padded_length;
    add(OutputKind::kWeightedValues,
        {layout.sequences, description().heads_at(layer), length, length,
         description().layer.attention.value_width},
        layer);
  }
  if (outputs.pooled) add(OutputKind::kPooled, {layout.sequences, pooled_width()});
  if (const auto& vectors = outputs.token_vectors) {
    if (vectors->returned) add(OutputKind::kTokenVectors, RowsShape(token_vectors_width()));
    if (vectors->query) add(OutputKind::kScores, {layout.sequences});
  }
  return tensors;
}

int64_t PredictScratchBytes(const ComputeRequest& request) {
  const Outputs& outputs = request.outputs;
  CheckedSize scratch;
  const auto add_floats = [&](int64_t rows, int64_t width) {
    scratch = scratch + ByteCount({rows, width}, DataType::kFloat32);
  };
  if (request.bias) scratch = scratch + ByteCount(request.bias->shape, DataType::kFloat32);
  if (!outputs.attention.layers.empty()) scratch = scratch + ProbabilityScratchBytes(request);
  const int64_t tokens = request.layout.tokens();
  if (outputs.attention.weighted_values) {
    add_floats(tokens, request.description().layer.context_width());
  }
  if (outputs.pooled && outputs.pooled->head == HeadKind::kClassifier &&
      request.description().classifier->is_late()) {
    add_floats(tokens, request.pooled_width());
  }
  if (outputs.token_vectors) {
    add_floats(tokens, request.token_vectors_width());
    const auto& query = outputs.token_vectors->query;
    if (query) add_floats(static_cast<int64_t>(query->size()) + tokens, 1);
  }
  if (outputs.sparse) {
    add_floats(request.sequences(), request.description().sparse_width());  // with their zeros
    scratch = scratch + CheckedSize(request.most_sparse_elements()) * sizeof(SparseElement);
  }
  if (const KeptIds* ids = std::get_if<KeptIds>(&request.input)) scratch = scratch + ids->bytes();
  return scratch.value_or(INT64_MAX);
}

absl::StatusOr<int64_t> PredictResponseBytes(const ComputeRequest& request,
                                             int64_t max_answer_bytes) {
  const Outputs& outputs = request.outputs;
  CheckedSize response = kResponseHeadBytes;
  const auto add = [&](const std::vector<int64_t>& shape, DataType dtype) {
    response = response + ByteCount(shape, dtype) + kTensorHeadBytes;
  };
  for (const OutputTensor& output : request.output_tensors()) {
    add(output.tensor.shape(), output.tensor.dtype());
  }
  if (request.texts) {
    response = response + CheckedSize(kLengthBytes) * request.layout.sequences +
               (outputs.tokens ? request.texts->description_bytes() : 0);
  }
  if (outputs.sparse) {
    add({request.most_sparse_elements()}, outputs.dtype);
    add({request.most_sparse_elements()}, DataType::kInt32);
    response = response + CheckedSize(kSparseCountBytes) * request.layout.sequences;
  }
  if (!response.ok() || response.value() > max_answer_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the response would take ",
                     response.ok() ? absl::StrCat(response.value()) : "more than 2^63",
                     " bytes; the server allows ", max_answer_bytes, " (--max-answer-bytes)"));
  }
  return response.value();
}

}  // namespace attendant::server
