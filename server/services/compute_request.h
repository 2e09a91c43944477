// A request that has passed every check: what to compute, from what, and what to answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/checkpoint/model_description.h"
#include "server/batching/job.h"
#include "server/services/encoder_service.h"
#include "server/services/served_model.h"
#include "server/services/tensor_check.h"
#include "server/services/token_ids.h"
#include "server/services/token_layout.h"

namespace attendant::server {

enum class Operation : int32_t { kAttendContext, kAttendProjected, kAttendBlock, kEncode };

struct PooledOutput {
  std::vector<PoolingMode> modes = {};  // empty: as the checkpoint describes
  bool classifies = false;              // by the checkpoint's classification head instead
  bool normalize = false;
  int64_t width = 0;  // P
};

struct ComputeRequest {
  std::shared_ptr<const ServedModel> model;
  Operation operation = Operation::kEncode;
  int64_t first_layer = 0;
  int64_t layers = 1;
  TokenLayout layout;
  std::variant<CheckedTensor, KeptIds> input;  // hidden states or features, or ids
  std::optional<TokenLayout> features;  // where the kept ones are in the input, if it is them
  std::optional<CheckedTensor> bias;
  int64_t truncated_tokens = 0;  // that `layout` no longer has
  std::string request_id;

  // The answer.
  DataType output_dtype = DataType::kFloat32;
  int64_t width = 0;  // of its hidden states
  bool wants_hidden_states = true;
  std::vector<int64_t> intermediate_layers;
  std::vector<int64_t> attention_layers;
  std::optional<PooledOutput> pooled;

  const ModelDescription& description() const { return model->encoder->description(); }
  BatchKey key() const;

  // Appends the rows of the last layer's output that the answer needs, ascending, where the batch
  // holds this request's rows from `first_row` on, and returns true; false if it needs all.
  bool AppendWantedRows(int64_t first_row, std::vector<int32_t>& rows) const;

  // Shapes of the answer's tensors.
  std::vector<int64_t> hidden_shape() const;         // [B, S, width] or [T, width]
  std::vector<int64_t> probabilities_shape() const;  // [B, H, S, S]
  std::vector<int64_t> pooled_shape() const;         // [B, P]
};

// Memory that a request takes while it is queued and computed.
struct RequestBytes {
  int64_t answer =
      0;  // of the answer's message, at most: exact for the tensors, rounded up for the rest
  int64_t scratch = 0;  // ids, the bias in float32, one layer's probabilities
};

// RESOURCE_EXHAUSTED, with both sizes, if the answer's message could exceed `max_answer_bytes`.
absl::StatusOr<RequestBytes> PredictBytes(const ComputeRequest& request, int64_t max_answer_bytes);

}  // namespace attendant::server
