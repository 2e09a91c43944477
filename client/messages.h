// Requests and answers of the service as plain structs. Every field means what the field of its
// name in attendant/v1/encoder_service.proto does; shapes and errors are documented there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/tensor.h"

namespace attendant::v1 {
class GetModelResponse;
}

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

// What GetModel answers has no mirror here: it is the protocol's message, whose fields are those of
// attendant/v1/encoder_service.pb.h. Include that to read them.
using ModelInfo = v1::GetModelResponse;

// What grpc.health.v1 answers; by its number there.
enum class Health : int { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

}  // namespace attendant::client
