// Requests and answers of the service as plain structs. Every field means what the field of its
// name in attendant/v1/encoder_service.proto does; shapes and errors are documented there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/tensor.h"

namespace attendant::client {

// How far into a layer's attention block Attend goes; by its number in the protocol.
enum class AttendStage : int { kContext = 0, kProjected = 1, kBlock = 2 };

// How a sequence's tokens become one vector; by its number in the protocol.
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

// On which side token ids are cut that are longer than the model's positions reach; by its number
// in the protocol.
enum class Truncation : int { kNone = 0, kRight = 1, kLeft = 2 };

// How attention probabilities are answered; by its number in the protocol.
enum class AttentionForm : int { kPerHead = 0, kHeadMean = 1, kTopKeys = 2 };

// The order of the rows of a padded request and of its answer; by its number in the protocol.
enum class Layout : int { kBatchFirst = 0, kSequenceFirst = 1 };

// Rows that queries attend to instead of their own sequence, in the layout of their request.
struct Memory {
  Tensor hidden_states;  // [B or 1, M, K], or packed [N, K] with `lengths`
  std::optional<Tensor> attention_mask;
  std::vector<int64_t> lengths;
  std::optional<Tensor> values;  // default: hidden_states
};

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
  std::string memory_handle;  // of PutMemory, instead of memory
};

// How the server computed a request.
struct Execution {
  absl::Duration queue;
  absl::Duration copy;
  absl::Duration compute;
  int64_t tokens = 0;
  int64_t truncated_tokens = 0;
  int64_t batch_tokens = 0;
  int32_t batch_requests = 0;
  std::optional<DataType> compute_dtype;
  std::string compute_type;  // as the server's setting names it: "bf16x3"
};

struct AttendResult {
  Tensor output;
  std::optional<Tensor> attention_probabilities;
  std::optional<Tensor> attention_keys;
  std::optional<Tensor> weighted_values;
  Execution execution;
};

struct PutMemoryRequest {
  std::string model;
  uint32_t layer = 0;
  Layout layout = Layout::kBatchFirst;  // of the memory
  Memory memory;
  absl::Duration time_to_live;  // 0: as long as the server allows
  std::string request_id;
};

// What the server keeps.
struct RegisteredMemory {
  std::string handle;
  int64_t bytes = 0;
  absl::Time expires;  // by the server's clock
  Execution execution;
};

struct LayerSpan {
  uint32_t first = 0;
  uint32_t count = 1;
};

struct EncodeRequest {
  std::string model;
  std::optional<LayerSpan> layers;  // default: all
  Layout layout = Layout::kBatchFirst;
  std::optional<Tensor> hidden_states;  // exactly one of these three
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
  std::optional<DataType> output_dtype;
  std::string request_id;
};

// Where an item of a stream stands in a sequence that comes in parts.
struct SequencePart {
  uint64_t sequence = 0;                     // 0: the request stands alone
  std::optional<uint64_t> first_token = {};  // tokens of the sequence before this part
  bool ends = false;                         // the sequence, with this part
};

struct LayerTensor {
  uint32_t layer = 0;
  Tensor tensor;
};

struct EncodeResult {
  std::optional<Tensor> hidden_states;
  std::optional<Tensor> pooled;
  std::vector<LayerTensor> intermediate;
  std::vector<LayerTensor> attention_probabilities;
  std::vector<LayerTensor> attention_keys;
  Execution execution;
};

struct LayerDescription {
  int64_t hidden_size = 0;
  int64_t heads = 0;
  int64_t key_width = 0;
  int64_t value_width = 0;
  int64_t feed_forward_width = 0;
  float score_scale = 0;
  std::string norm_placement;
  float norm_epsilon = 0;
  std::string activation;
  bool has_output_projection = false;
  std::string norm_kind;
  bool has_gate = false;
  bool has_branch_scale = false;
  std::string relative_positions;
  int64_t output_width = 0;
  int64_t input_projections = 0;
  int64_t window = 0;  // in blocks of window_block positions; 0: no layer has one
  int64_t window_block = 1;
  int64_t first_global_blocks = 0;
  int64_t last_global_blocks = 0;
  int64_t full_attention_up_to = 0;
  std::string attention;
  int64_t key_input_width = 0;
  int64_t value_input_width = 0;
};

struct EmbeddingDescription {
  int64_t vocabulary = 0;
  int64_t positions = 0;
  int64_t longest_sequence = 0;  // 0: any
  int64_t token_types = 0;
};

// What stands before the layers of a model that takes features.
struct FrontDescription {
  int64_t own_rows = 0;  // before each sequence of features
  int64_t features = 0;  // at most in a sequence; 0: any number
  bool needs_every = false;
  int64_t feature_width = 0;
};

struct StageCost {
  std::string stage;
  int64_t flops_per_token = 0;
  int64_t flops_per_pair = 0;
  int64_t flops_per_sequence = 0;
};

struct Limits {
  int64_t max_request_tokens = 0;
  int64_t max_batch_tokens = 0;
  int64_t max_request_bytes = 0;
  int64_t max_answer_bytes = 0;
};

struct ThreadPlan {
  int32_t instances = 0;
  int32_t threads_per_instance = 0;
  std::string isa;
  std::string onednn_version;
  std::vector<int32_t> instance_nodes;  // empty: no instance is bound to a NUMA node
  int64_t rows_per_thread_from = 0;     // tokens; 0: never
};

struct PrunedLayer {
  int64_t layer = 0;
  std::vector<int64_t> heads;  // that are left
};

struct ModelInfo {
  std::string name;
  std::string family;
  LayerDescription layer;
  int64_t layers = 0;
  int64_t weight_sets = 0;
  bool has_exit_norm = false;
  std::optional<EmbeddingDescription> embeddings;  // absent: no token ids
  std::optional<FrontDescription> front;           // absent: no features
  std::vector<int64_t> windowed_layers;            // with a window; the others see all
  // In those, beside the window: [query's block, key's block] that are seen, and blocks that see
  // all and are seen by all.
  std::vector<std::array<int64_t, 2>> block_pairs;
  std::vector<int64_t> global_blocks;
  int64_t pooled_width = 0;
  int64_t classes = 0;
  std::vector<PrunedLayer> pruned_layers;
  std::optional<DataType> compute_dtype;
  std::string compute_type;          // as in Execution
  std::string gemm;                  // "onednn", "tiles", "mixed"; empty: no linear layers
  int64_t weight_bytes = 0;          // without those that it shares with its base
  std::string base;                  // empty: none
  int64_t sequence_state_bytes = 0;  // 0: it takes no sequences in parts
  std::vector<StageCost> stage_costs;
  Limits limits;
  ThreadPlan thread_plan;
  std::vector<std::string> unused_tensors;
};

// What grpc.health.v1 answers; by its number there.
enum class Health : int { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

}  // namespace attendant::client
