// ComputeRequest, a fully checked EncodeRequest, AttendRequest or PutMemoryRequest: its
// computation, inputs and outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/layers/encoder.h"
#include "engine/model/model_description.h"
#include "server/batching/job.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/models/served_model.h"
#include "server/request/token_ids.h"
#include "server/request/token_rows.h"
#include "server/request/tokenized_texts.h"
#include "server/tensors/response_tensor.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// EncodeRequest: all layers of the span in sequence.
struct EncodeLayers {};

// PutMemoryRequest: the span's single layer projects CrossKvRows and keeps the keys and values.
// There is one sequence without queries, and no output.
struct RegisterMemory {
  std::shared_ptr<RegisteredCrossKv> cross_kv;  // buffers for the keys and values of these rows
  absl::Duration age;                           // time until they expire
};

// AttendRequest asks for one stage of the one layer of the span.
using Operation = std::variant<EncodeLayers, RegisterMemory, AttendStage>;

// Hidden states, features or token ids. The model projects features and puts its prefix tokens
// before them; `ComputeRequest::layout` includes these.
using Input = std::variant<CheckedTensor, TokenRows, KeptIds>;

// Each sequence attends to itself.
struct OwnKeys {};

// Keys that the queries attend to. Those of CrossKvRows are projected in the request's batch; those
// of RegisteredCrossKv were by an earlier PutMemory. A sequence that is a chunk attends to itself
// and, through the state of the StreamSequence, to its earlier chunks.
using Keys = std::variant<OwnKeys, CrossKvRows, std::shared_ptr<const RegisteredCrossKv>,
                          std::shared_ptr<StreamSequence>>;

// Outputs of the attention of some layers.
struct AttentionOutput {
  std::vector<int64_t> layers;
  bool probabilities = true;
  v1::AttentionForm form = v1::PER_HEAD;  // of the probabilities
  int64_t top_k = 0;                      // for TOP_KEYS
  bool weighted_values = false;
};

struct PooledOutput {
  // The checkpoint's head, with its pooling: kPooling or kClassifier. kNone only pools, by `mode`.
  HeadKind head = HeadKind::kPooling;
  PoolingMode mode = PoolingMode::kMean;
  bool normalize = false;
  // [B]: how many leading kept tokens of each sequence to exclude, at most; empty excludes none.
  std::vector<int64_t> prompt_tokens = {};

  // Returns the number of prompt tokens in a sequence of this length.
  int64_t PromptOf(int64_t sequence, int64_t length) const {
    return prompt_tokens.empty() ? 0 : std::min(prompt_tokens[sequence], length);
  }
};

// The output of the checkpoint's token head for each token.
struct TokenVectorsOutput {
  bool returned = true;
  // If not null, scores each sequence against these vectors [Q, P] of a query's tokens, without
  // zero vectors; see EncodeRequest.query_vectors.
  std::shared_ptr<const std::vector<float>> query = nullptr;
  bool normalize = false;
  bool takes_mean = false;   // divide scores by the number of query vectors
  bool skips_first = false;  // return zeros for each sequence's first token
  // Ascending ids of tokens that get zero vectors and, if `only_ids` is not null, of the only
  // tokens that do not. The model owns both.
  const std::vector<int32_t>* skipped_ids = nullptr;
  const std::vector<int32_t>* only_ids = nullptr;

  bool Skips(int32_t id) const {
    return (skipped_ids && absl::c_binary_search(*skipped_ids, id)) ||
           (only_ids && !absl::c_binary_search(*only_ids, id));
  }
};

// A vocabulary entry with a weight in a sequence, until the response is built.
struct SparseElement {
  int32_t word;
  float weight;
};

struct Outputs {
  DataType dtype = DataType::kFloat32;
  bool hidden_states = false;
  // [R]: the kept tokens whose hidden states to return, -1 for padding. If not set, all rows.
  std::optional<std::vector<int32_t>> hidden_tokens;
  std::vector<int64_t> intermediate_layers;
  AttentionOutput attention;
  std::optional<PooledOutput> pooled;
  std::optional<TokenVectorsOutput> token_vectors;
  bool sparse = false;  // vectors over the vocabulary
  bool tokens = false;  // tokens of `texts`
};

// Kinds of tensors in a response. Tensors of a layer or its attention occur once for each requested
// layer.
enum class OutputKind {
  kHiddenStates,
  kIntermediate,
  kProbabilities,
  kAttentionKeys,
  kWeightedValues,
  kPooled,
  kTokenVectors,
  kScores,
};

struct OutputTensor {
  OutputKind kind;
  ResponseTensor tensor;
  int64_t layer = 0;
};

// A whole request, or a slice of it (request_slice.h).
struct ComputeRequest {
  LayerSpan span;
  Operation operation;
  TokenLayout layout;          // of the queries
  int64_t first_sequence = 0;  // index of the layout's first sequence in the whole request
  Input input;
  Keys keys;
  std::optional<CheckedTensor> bias;
  // [layers, H], or [H] for every layer, with the checkpoint's H; or empty.
  std::vector<float> head_gates;
  int64_t truncated_tokens = 0;  // tokens missing from `layout`; for texts, how many were cut
  std::shared_ptr<const TokenizedTexts> texts = {};  // null if the request has no texts
  Outputs outputs;
  std::string request_id;
  // Client whose results the cache may return and keep for this request; if empty, the cache is not
  // used.
  std::string client = {};

  const ModelDescription& description() const { return span.description(); }
  // Shape of the first layer.
  const LayerShape& layer_shape() const { return description().layer_at(span.first_layer); }
  BatchKey key() const;

  // The range of the model that it computes, and the predicted seconds of its sequences at the
  // `cost` of that range.
  LayerRange range() const;
  double PredictSeconds(const SpanCost& cost) const;
  double PredictSeconds(int64_t sequence, const SpanCost& cost) const;

  // Returns null for other operations.
  const RegisterMemory* registration() const { return std::get_if<RegisterMemory>(&operation); }

  // Each returns null if `keys` holds an alternative of another type.
  const CrossKvRows* cross_kv_rows() const { return std::get_if<CrossKvRows>(&keys); }
  const RegisteredCrossKv* registered() const {
    const auto* found = std::get_if<std::shared_ptr<const RegisteredCrossKv>>(&keys);
    return found == nullptr ? nullptr : found->get();
  }
  StreamSequence* sequence() const {
    const auto* found = std::get_if<std::shared_ptr<StreamSequence>>(&keys);
    return found == nullptr ? nullptr : found->get();
  }
  // Tokens of the sequence, if the request is a chunk.
  ChunkTokens chunk_tokens() const;
  bool attends_cross_kv() const { return cross_kv_rows() != nullptr || registered() != nullptr; }

  int64_t sequences() const { return layout.sequences; }

  // Rows gathered for the request: kept rows, and all rows.
  int64_t tokens() const {
    return layout.tokens() + (cross_kv_rows() ? cross_kv_rows()->tokens() : 0);
  }
  int64_t rows() const { return layout.rows + (cross_kv_rows() ? cross_kv_rows()->rows() : 0); }

  // Returns the tokens pooled for a sequence. Requires outputs.pooled.
  TokenRange PooledTokens(int64_t sequence) const;

  // A single sequence of keys serves all sequences of queries.
  const TokenLayout& key_layout() const;
  int64_t key_sequence(int64_t sequence) const {
    if (key_layout().sequences == 1) return 0;
    return sequence + (registered() == nullptr ? 0 : first_sequence);
  }
  // Elements in the score matrix of one head.
  int64_t pairs(int64_t sequence) const {
    return layout.length(sequence) * key_layout().length(key_sequence(sequence));
  }

  // Appends, in ascending order, the rows of the last layer's output that the response needs, given
  // that the request's rows start at `first_row` of the batch. Returns false if it needs all rows.
  bool AppendSelectedRows(int64_t first_row, std::vector<int32_t>& rows) const;

  // The shape to which attention_bias broadcasts: [B, H, S, S] with the checkpoint's H, or [B, H,
  // S, M] with M rows of cross-attention.
  std::vector<int64_t> scores_shape() const;

  // Columns of the returned hidden states.
  int64_t width() const;

  // The tensors of the response, except for sparse vectors, without memory.
  std::vector<OutputTensor> output_tensors() const;
  // Widths of the requested vectors.
  int64_t pooled_width() const;
  int64_t token_vectors_width() const;
  // Upper bound of non-zero elements in the sparse vectors. A lexical head gives weight only to the
  // ids of the input tokens.
  int64_t most_sparse_elements() const {
    return description().lexical_head ? layout.tokens()
                                      : layout.sequences * description().sparse_width();
  }

 private:
  // [B, S, width], [S, B, width] or [T, width].
  std::vector<int64_t> RowsShape(int64_t width) const;
  // Depends on the form, with M = S or the number of keys and the layer's H: [B, H, S, M], [B, S,
  // M] or [B, H, S, k].
  std::vector<int64_t> ProbabilitiesShape(int64_t layer) const;
  bool AppendRowsToPool(int64_t first_row, std::vector<int32_t>& rows) const;
};

// Upper bound of protobuf's overhead for a whole response (the execution, a stream item's id, the
// handle of registered keys).
inline constexpr int64_t kResponseHeadBytes = 160;

// Returns an upper bound of the response message, exact for the tensors. Returns INVALID_ARGUMENT,
// with both sizes, if it exceeds `max_answer_bytes`.
absl::StatusOr<int64_t> PredictResponseBytes(const ComputeRequest& request,
                                             int64_t max_answer_bytes);

// Returns the memory that the request needs while it is queued and computed: ids, the float32 bias,
// one layer's probabilities and values, and token and vocabulary vectors.
int64_t PredictScratchBytes(const ComputeRequest& request);

}  // namespace attendant::server
