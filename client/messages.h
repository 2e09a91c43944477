// The requests and responses of the service as plain structs. Fields are named as in
// attendant/v1/encoder_service.proto, which documents their meaning, shapes and errors. An empty
// vector or string, an absent optional or a default value leaves the field unset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/tensor.h"

namespace attendant::v1 {
class GetModelResponse;
class GetTokenizerResponse;
}  // namespace attendant::v1

namespace attendant::client {

// The stage of a layer's attention block that Attend returns. Values are as in the protocol, here
// and in the enums below.
enum class AttendStage : int { kContext = 0, kProjected = 1, kBlock = 2 };

// The reduction of a sequence's tokens to one vector.
enum class Pooling : int {
  kModel = 0,
  kFirstToken = 1,
  kMean = 2,
  kMax = 3,
  kMeanSqrtLen = 4,
  kPositionWeightedMean = 5,
  kLastToken = 6,
  kClassifier = 7,
};

// The side on which texts and token ids are truncated to the model's max_sequence_length.
enum class Truncation : int { kNone = 0, kRight = 1, kLeft = 2 };

// The form of returned attention probabilities.
enum class AttentionForm : int { kPerHead = 0, kHeadMean = 1, kTopKeys = 2 };

// The order of the first two dimensions of a padded request and its response.
enum class Layout : int { kBatchFirst = 0, kSequenceFirst = 1 };

// Rows that queries attend to instead of their own sequence, in the layout of the request.
struct Memory {
  Tensor hidden_states;  // [B or 1, M, K], or packed [N, K] with `lengths`
  std::optional<Tensor> attention_mask;
  std::vector<int64_t> lengths;
  std::optional<Tensor> values;  // input of the value projection; default: hidden_states
};

// Attention of one layer. An empty `model` means the server's only model, here and below.
struct AttendRequest {
  std::string model;
  uint32_t layer = 0;
  AttendStage stage = AttendStage::kContext;
  Layout layout = Layout::kBatchFirst;
  Tensor hidden_states;  // [B, S, E], [S, B, E], or packed [T, E] with `lengths`
  std::optional<Tensor> attention_mask;
  std::vector<int64_t> lengths;
  std::optional<Tensor> attention_bias;
  bool return_attention_probabilities = false;
  std::vector<float> head_gates;
  std::vector<int64_t> query_rows;
  AttentionForm attention_form = AttentionForm::kPerHead;
  uint32_t attention_top_k = 0;
  bool return_weighted_values = false;
  std::optional<DataType> output_dtype;
  std::string request_id;
  std::optional<Memory> memory;
  std::string memory_handle;  // a RegisteredMemory::handle, instead of `memory`
};

// Timings of a request in the server, and the size of its batch. Durations except `queue` and
// `tokenize` cover the whole batch.
struct Execution {
  absl::Duration queue;          // waiting in the queue
  absl::Duration copy;           // copying the batch in and its results out
  absl::Duration compute;        // computing the batch
  absl::Duration tokenize;       // tokenizing the request's texts
  int64_t tokens = 0;            // kept tokens of the request, including memory rows
  int64_t truncated_tokens = 0;  // tokens removed by `truncation`
  int64_t batch_tokens = 0;      // kept tokens of the batch
  int32_t batch_requests = 0;
  std::optional<DataType> compute_dtype;
  std::string compute_type;      // as in the server's settings: "bf16x3"
  int64_t model_version = 0;     // 0 for models without versions
  int32_t cached_sequences = 0;  // sequences with cached vectors
};

// Tensors have the request's layout. Optional tensors are present if requested.
struct AttendResult {
  Tensor output;
  std::optional<Tensor> attention_probabilities;
  std::optional<Tensor> attention_keys;
  std::optional<Tensor> weighted_values;
  Execution execution;
};

// Registers a memory: the server computes its keys and values once and keeps them for later
// AttendRequests.
struct PutMemoryRequest {
  std::string model;
  uint32_t layer = 0;
  Layout layout = Layout::kBatchFirst;  // the layout of the memory
  Memory memory;
  absl::Duration time_to_live;  // 0: the server's maximum
  std::string request_id;
};

// A memory that the server keeps until it expires or is dropped.
struct RegisteredMemory {
  std::string handle;
  int64_t bytes = 0;
  absl::Time expires;  // on the server's clock
  Execution execution;
};

// The layers [first, first + count).
struct LayerSpan {
  uint32_t first = 0;
  uint32_t count = 1;
};

// Computes a span of whole encoder layers, from texts, token ids, features or hidden states.
struct EncodeRequest {
  std::string model;
  std::optional<LayerSpan> layers;  // default: all
  Layout layout = Layout::kBatchFirst;
  std::optional<Tensor> hidden_states;  // exactly one of hidden_states, token_ids, features, texts
  std::optional<Tensor> token_ids;
  std::optional<Tensor> features;
  std::optional<Tensor> token_type_ids;
  std::optional<Tensor> position_ids;
  std::optional<Tensor> attention_mask;
  std::vector<int64_t> lengths;
  std::optional<Tensor> attention_bias;
  Truncation truncation = Truncation::kNone;
  bool omit_hidden_states = false;
  std::vector<uint32_t> intermediate_layers;
  std::vector<uint32_t> attention_layers;
  std::vector<float> head_gates;
  std::vector<int64_t> query_rows;
  AttentionForm attention_form = AttentionForm::kPerHead;
  uint32_t attention_top_k = 0;
  bool return_pooled = false;
  Pooling pooling = Pooling::kModel;
  bool normalize_pooled = false;
  // Number of prompt tokens at the start of each sequence, which some models exclude from the
  // pooled vector: one number, or one per sequence.
  std::vector<int64_t> prompt_tokens;
  // Also return the output of the checkpoint's token head: class scores or a vector for each token.
  bool return_token_vectors = false;
  bool normalize_token_vectors = false;
  std::string task;  // "query" or "document", for models whose token vectors depend on it
  // [Q, P], the token vectors of a query: also return the late-interaction score of each sequence.
  std::optional<Tensor> query_vectors;
  // Also return a sparse vector over the vocabulary for each sequence (SPLADE).
  bool return_sparse = false;
  std::vector<std::string> texts;
  std::vector<std::string> text_pairs;
  std::optional<std::string> prompt;
  std::string prompt_name;
  bool return_tokens = false;
  std::optional<DataType> output_dtype;
  std::string request_id;
};

// Position of a stream item in a sequence that is sent in chunks.
struct SequencePart {
  uint64_t sequence = 0;                     // chosen by the caller; 0: not a chunk
  std::optional<uint64_t> first_token = {};  // number of tokens before this chunk
  bool ends = false;                         // the last chunk of its sequence
};

// A tensor of one layer.
struct LayerTensor {
  uint32_t layer = 0;
  Tensor tensor;
};

// Sparse vectors, one after the other.
struct SparseVectors {
  std::vector<int64_t> counts;  // [B]: number of non-zero elements of each vector
  Tensor indices;               // int32 [sum of counts], ascending within a vector, none negative
  Tensor weights;               // [sum of counts]
};

// The tokens of a text or a pair of texts. All lists have one element per token.
struct TextTokens {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> token_type_ids;
  std::vector<uint32_t> sources;       // 0 and 1: the texts; 2: an added special token
  std::vector<uint32_t> begins, ends;  // in code points of the text
  std::vector<uint32_t> byte_begins, byte_ends;
  std::vector<std::string> tokens;  // as spelled in the vocabulary
  bool truncated = false;           // tokens were removed
};

// Tensors are present if requested; hidden_states unless omitted.
struct EncodeResult {
  std::optional<Tensor> hidden_states;
  std::optional<Tensor> pooled;
  std::optional<Tensor> token_vectors;
  std::optional<Tensor> scores;  // [B]
  std::optional<SparseVectors> sparse;
  std::vector<LayerTensor> intermediate;
  std::vector<LayerTensor> attention_probabilities;
  std::vector<LayerTensor> attention_keys;
  std::vector<int64_t> lengths;    // with texts: tokens of each
  std::vector<TextTokens> tokens;  // with return_tokens
  Execution execution;
};

// Tokenizes texts as Encode does.
struct TokenizeRequest {
  std::string model;
  std::vector<std::string> texts;
  std::vector<std::string> text_pairs;
  std::optional<std::string> prompt;
  std::string prompt_name;
  Truncation truncation = Truncation::kNone;
  bool omit_special_tokens = false;
};

struct TokenizeResult {
  std::vector<TextTokens> texts;
  int64_t model_version = 0;
};

// The response of GetModel, a message of the protocol. Include attendant/v1/encoder_service.pb.h to
// read it.
using ModelInfo = v1::GetModelResponse;

// The response of GetTokenizer, likewise.
using TokenizerInfo = v1::GetTokenizerResponse;

// The serving status of grpc.health.v1, with the same values.
enum class Health : int { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

}  // namespace attendant::client
