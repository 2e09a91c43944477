// An EncodeRequest, AttendRequest or PutMemoryRequest that has passed every check: the computation,
// its inputs, and the outputs that are returned.
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
#include "engine/layers/encoder.h"
#include "engine/model/model_description.h"
#include "server/batching/job.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/models/layer_span.h"
#include "server/request/cross_kv_rows.h"
#include "server/request/token_ids.h"
#include "server/request/tokenized_texts.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// EncodeRequest: all layers of the span, one after the other.
struct EncodeLayers {};

// PutMemoryRequest: the one layer of the span projects CrossKvRows, whose keys and values are kept.
// There is one sequence of no queries, and no output.
struct RegisterMemory {
  std::shared_ptr<RegisteredCrossKv> cross_kv;  // room for the keys and values of these rows
  absl::Duration age;                           // until they expire
};

// AttendRequest asks for one stage of the one layer of the span.
using Operation = std::variant<EncodeLayers, RegisterMemory, AttendStage>;

// Rows of features, which the model projects and puts its prefix tokens before.
struct FeatureRows {
  CheckedTensor tensor;
  // Which of its rows are kept; `ComputeRequest::layout` has the prefix tokens too.
  TokenLayout layout;
  // The tensor has the pixels of images in their own order, and its rows are their patches.
  bool are_pixels = false;
};

// Hidden states, features or ids of tokens.
using Input = std::variant<CheckedTensor, FeatureRows, KeptIds>;

// Each sequence attends to itself.
struct OwnKeys {};

// The keys and values of rows that an earlier PutMemory has projected.
struct RegisteredKeys {
  std::shared_ptr<const RegisteredCrossKv> cross_kv;
  int64_t first_sequence = 0;  // of them, that the first sequence of queries attends to
};

// The sequence attends to itself and, by its state, to the chunks of it that came before.
struct Chunk {
  std::shared_ptr<StreamSequence> sequence;
};

// The keys that the queries attend to; those of CrossKvRows are projected with their batch.
using Keys = std::variant<OwnKeys, CrossKvRows, RegisteredKeys, Chunk>;

struct HiddenStatesOutput {
  // [R]: the kept tokens that are returned, -1 for padding; none: all rows.
  std::optional<std::vector<int32_t>> tokens;
};

enum class AttentionForm { kPerHead, kHeadMean, kTopKeys };

// Outputs of the attention of some layers.
struct AttentionOutput {
  std::vector<int64_t> layers;
  bool probabilities = true;
  AttentionForm form = AttentionForm::kPerHead;  // of the probabilities
  int64_t top_k = 0;                             // of kTopKeys
  bool weighted_values = false;
};

// As the checkpoint describes.
struct DescribedPooling {};

// By the checkpoint's classification head.
struct ClassifierPooling {};

struct PooledOutput {
  std::variant<DescribedPooling, ClassifierPooling, PoolingMode> pooling = {};
  bool normalize = false;
  // [B]: the first kept tokens of each sequence that are left out, at most; or empty: none.
  std::vector<int64_t> prompt_tokens = {};

  // The head that makes the vector of what is pooled.
  HeadKind head() const {
    if (std::holds_alternative<PoolingMode>(pooling)) return HeadKind::kNone;
    return std::holds_alternative<ClassifierPooling>(pooling) ? HeadKind::kClassifier
                                                              : HeadKind::kPooling;
  }

  // How many they are of a sequence of this length.
  int64_t PromptOf(int64_t sequence, int64_t length) const {
    return prompt_tokens.empty() ? 0 : std::min(prompt_tokens[sequence], length);
  }
};

// The vectors of a query's tokens, back to back, without those that are zeros.
struct QueryVectors {
  std::vector<float> numbers;  // [Q, P]
};

// The output of the checkpoint's token head, for each token.
struct TokenVectorsOutput {
  bool returned = true;
  // Not null: each sequence is scored by these, see EncodeRequest.query_vectors.
  std::shared_ptr<const QueryVectors> query = nullptr;
  bool normalize = false;
  bool takes_mean = false;   // scores are divided by the number of the query's vectors
  bool skips_first = false;  // the vector of each sequence's first token is zeros
  // Ids, ascending, of the tokens whose vectors are zeros, and, if not null, of the only tokens
  // whose vectors are not. Both are the model's.
  const std::vector<int32_t>* skipped_ids = nullptr;
  const std::vector<int32_t>* only_ids = nullptr;

  bool Skips(int32_t id) const {
    return (skipped_ids && absl::c_binary_search(*skipped_ids, id)) ||
           (only_ids && !absl::c_binary_search(*only_ids, id));
  }
};

// One of the words that have weight in a sequence, until the response is made.
struct SparseElement {
  int32_t word;
  float weight;
};

struct Outputs {
  DataType dtype = DataType::kFloat32;
  std::optional<HiddenStatesOutput> hidden_states;
  std::vector<int64_t> intermediate_layers;
  AttentionOutput attention;
  std::optional<PooledOutput> pooled;
  std::optional<TokenVectorsOutput> token_vectors;
  bool sparse = false;  // the vectors over the vocabulary
  bool tokens = false;  // those of `texts`
};

// The whole of a request, or a slice of it (request_slice.h).
struct ComputeRequest {
  LayerSpan span;
  Operation operation;
  TokenLayout layout;          // of the queries
  int64_t first_sequence = 0;  // of these, in the whole
  Input input;
  Keys keys;
  std::optional<CheckedTensor> bias;
  std::vector<float> head_gates;  // [layers, H], or [H] for each, H of the checkpoint; or empty
  int64_t truncated_tokens = 0;   // that `layout` no longer has; of texts: how many were cut
  std::shared_ptr<const TokenizedTexts> texts = {};  // null: it came with something else
  Outputs outputs;
  std::string request_id;
  // Whose results the cache may have and keep for this request; empty: it is not asked.
  std::string client = {};

  const ModelDescription& description() const { return span.description(); }
  // Shape of the first layer.
  const LayerShape& layer_shape() const { return description().layer_at(span.first_layer); }
  BatchKey key() const;

  // What of the model it computes, and the seconds of its sequences at `cost`, which is that of
  // this range.
  LayerRange range() const;
  double PredictSeconds(const SpanCost& cost) const;
  double PredictSeconds(int64_t sequence, const SpanCost& cost) const;

  // Null: it is another operation.
  const RegisterMemory* registration() const { return std::get_if<RegisterMemory>(&operation); }

  // Each is null if `keys` are others.
  const CrossKvRows* cross_kv_rows() const { return std::get_if<CrossKvRows>(&keys); }
  const RegisteredCrossKv* registered() const {
    const RegisteredKeys* found = std::get_if<RegisteredKeys>(&keys);
    return found == nullptr ? nullptr : found->cross_kv.get();
  }
  StreamSequence* sequence() const {
    const Chunk* chunk = std::get_if<Chunk>(&keys);
    return chunk == nullptr ? nullptr : chunk->sequence.get();
  }
  // Its tokens, as a chunk of a sequence.
  ChunkTokens chunk_tokens() const;
  bool attends_cross_kv() const { return cross_kv_rows() != nullptr || registered() != nullptr; }

  int64_t sequences() const { return layout.sequences; }

  // Rows that are gathered for it: the kept ones, and all.
  int64_t tokens() const {
    return layout.tokens() + (cross_kv_rows() ? cross_kv_rows()->tokens() : 0);
  }
  int64_t rows() const { return layout.rows + (cross_kv_rows() ? cross_kv_rows()->rows() : 0); }

  // The tokens of a sequence that its pooled vector, which there must be, is made of.
  TokenRange PooledTokens(int64_t sequence) const;

  // One sequence of keys may serve all sequences of queries.
  const TokenLayout& key_layout() const;
  int64_t key_sequence(int64_t sequence) const {
    if (key_layout().sequences == 1) return 0;
    const RegisteredKeys* found = std::get_if<RegisteredKeys>(&keys);
    return sequence + (found == nullptr ? 0 : found->first_sequence);
  }
  // Elements of the matrix of one head.
  int64_t pairs(int64_t sequence) const {
    return layout.length(sequence) * key_layout().length(key_sequence(sequence));
  }

  // Appends the rows of the last layer's output that the response needs, ascending, where the batch
  // holds this request's rows from `first_row` on, and returns true; false if it needs all.
  bool AppendSelectedRows(int64_t first_row, std::vector<int32_t>& rows) const;

  // The shape that attention_bias broadcasts to: [B, H of the checkpoint, S, S], or [B, H, S, M]
  // with M rows of cross-attention.
  std::vector<int64_t> scores_shape() const;

  // Columns of the hidden states that are returned.
  int64_t width() const;

  // Shapes of the response's tensors.
  std::vector<int64_t> rows_shape() const;    // [B, S, width], [S, B, width] or [T, width]
  std::vector<int64_t> hidden_shape() const;  // as rows_shape, or [R, width]
  // By the form, with M = S or the length of the keys: [B, H of the layer, S, M], [B, S, M] or [B,
  // H of the layer, S, k].
  std::vector<int64_t> probabilities_shape(int64_t layer) const;
  std::vector<int64_t> weighted_values_shape(int64_t layer) const;  // [B, H, S, S, Dv]
  std::vector<int64_t> pooled_shape() const;                        // [B, P]
  std::vector<int64_t> token_vectors_shape() const;                 // as rows_shape, P wide
  int64_t token_vectors_width() const;                              // P
  std::vector<int64_t> sparse_shape() const;                        // [B, V], with all zeros
  // The most elements of the sparse vectors that are not zero: a lexical head weighs no other words
  // than the tokens'.
  int64_t most_sparse_elements() const {
    return description().lexical_head ? layout.tokens()
                                      : layout.sequences * description().sparse_width();
  }

 private:
  bool AppendRowsToPool(int64_t first_row, std::vector<int32_t>& rows) const;
};

// Upper bound of what protobuf adds to a response as a whole (the execution, a stream item's id,
// the handle of registered keys).
inline constexpr int64_t kResponseHeadBytes = 160;

// RAM that a request takes while it is queued and computed.
struct RequestBytes {
  int64_t response = 0;  // upper bound of the message: exact for the tensors alone
  // Ids, the bias in float32, one layer's probabilities and values, vectors of tokens and over the
  // vocabulary.
  int64_t scratch = 0;
};

// INVALID_ARGUMENT, with both sizes, if the response's message could exceed `max_answer_bytes`.
absl::StatusOr<RequestBytes> PredictBytes(const ComputeRequest& request, int64_t max_answer_bytes);

}  // namespace attendant::server
