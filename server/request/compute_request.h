// A request that has passed every check: what to compute, from what, and what to answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/model/model_description.h"
#include "server/batching/job.h"
#include "server/cross_kv/memory_store.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/models/served_model.h"
#include "server/request/memory_input.h"
#include "server/request/token_ids.h"
#include "server/tensors/tensor_check.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

enum class Operation : int32_t {
  kAttendContext,
  kAttendProjected,
  kAttendBlock,
  kEncode,
  kPutMemory
};

// A memory to be made of `ComputeRequest::memory` and kept.
struct Registration {
  std::shared_ptr<RegisteredMemory> memory;
  absl::Duration age;
};

struct PooledOutput {
  std::vector<PoolingMode> modes = {};  // empty: as the checkpoint describes
  bool classifies = false;              // by the checkpoint's classification head instead
  bool normalize = false;
  int64_t width = 0;  // P
};

enum class AttentionForm { kPerHead, kHeadMean, kTopKeys };

// What is answered of the attention of some layers.
struct AttentionOutput {
  std::vector<int64_t> layers;
  bool probabilities = true;
  AttentionForm form = AttentionForm::kPerHead;  // of the probabilities
  int64_t top_k = 0;                             // of kTopKeys
  bool weighted_values = false;
};

struct ComputeRequest {
  std::shared_ptr<const ServedModel> model;
  Operation operation = Operation::kEncode;
  int64_t first_layer = 0;
  int64_t layers = 1;
  TokenLayout layout;
  std::variant<CheckedTensor, KeptIds> input;  // hidden states or features, or ids
  std::optional<TokenLayout> features;  // where the kept ones are in the input, if it is them
  // What the queries attend to, if not to themselves: one of these.
  std::optional<MemoryInput> memory;
  std::shared_ptr<const RegisteredMemory> registered;
  std::optional<Registration> registration;  // of PutMemory, which has no queries
  std::shared_ptr<StreamSequence> part_of;   // or none
  std::optional<CheckedTensor> bias;
  std::vector<float> head_gates;  // [layers, H], or [H] for each, H of the checkpoint; or empty
  int64_t truncated_tokens = 0;   // that `layout` no longer has
  std::string request_id;

  // The answer.
  DataType output_dtype = DataType::kFloat32;
  int64_t width = 0;  // of its hidden states
  bool wants_hidden_states = true;
  std::vector<int64_t> intermediate_layers;
  // [R]: the kept tokens whose hidden states are answered, -1 for padding; or none: all rows.
  std::optional<std::vector<int32_t>> query_tokens;
  AttentionOutput attention;
  std::optional<PooledOutput> pooled;

  LayerSpan span() const { return {model, first_layer, layers}; }
  const ModelDescription& description() const { return model->encoder->description(); }
  // Of the first layer.
  LayerShape layer_shape() const {
    return description().layer_shape(description().weight_set(first_layer));
  }
  BatchKey key() const;
  // Rows that are gathered for it.
  int64_t tokens() const { return layout.tokens() + (memory ? memory->tokens() : 0); }

  // The same with padding.
  int64_t rows() const { return layout.rows + (memory ? memory->rows() : 0); }

  // Where keys come from; one sequence may serve all of the request's.
  bool attends_memory() const { return memory.has_value() || registered != nullptr; }
  const TokenLayout& key_layout() const {
    if (registered != nullptr) return registered->origin().layout;
    return memory ? memory->layout : layout;
  }
  int64_t key_sequence(int64_t sequence) const {
    return key_layout().sequences == 1 ? 0 : sequence;
  }
  // Of the matrix of one head.
  int64_t pairs(int64_t sequence) const {
    return layout.length(sequence) * key_layout().length(key_sequence(sequence));
  }

  // Appends the rows of the last layer's output that the answer needs, ascending, where the batch
  // holds this request's rows from `first_row` on, and returns true; false if it needs all.
  bool AppendWantedRows(int64_t first_row, std::vector<int32_t>& rows) const;

  // What attention_bias broadcasts to: [B, H of the checkpoint, S, S], or [B, H, S, M] to a memory.
  std::vector<int64_t> scores_shape() const;

  // Shapes of the answer's tensors.
  std::vector<int64_t> rows_shape() const;    // [B, S, width], [S, B, width] or [T, width]
  std::vector<int64_t> hidden_shape() const;  // the same, or [R, width]
  // By the form, with M = S or that of the memory: [B, H of the layer, S, M], [B, S, M] or [B, H of
  // the layer, S, k].
  std::vector<int64_t> probabilities_shape(int64_t layer) const;
  std::vector<int64_t> weighted_values_shape(int64_t layer) const;  // [B, H, S, S, Dv]
  std::vector<int64_t> pooled_shape() const;                        // [B, P]

 private:
  bool AppendRowsToPool(int64_t first_row, std::vector<int32_t>& rows) const;
};

// Memory that a request takes while it is queued and computed.
struct RequestBytes {
  int64_t answer =
      0;  // of the answer's message, at most: exact for the tensors, rounded up for the rest
  int64_t scratch = 0;  // ids, the bias in float32, one layer's probabilities and values
};

// RESOURCE_EXHAUSTED, with both sizes, if the answer's message could exceed `max_answer_bytes`.
absl::StatusOr<RequestBytes> PredictBytes(const ComputeRequest& request, int64_t max_answer_bytes);

}  // namespace attendant::server
