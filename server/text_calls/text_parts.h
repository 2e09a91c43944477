// Divides the inputs of a text task into parts, each computed by an Encode request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/models/served_model.h"
#include "server/tensors/tensor_check.h"
#include "server/text_api/text_task.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

// Indices of inputs that are computed together: all texts, all pairs, or all token ids.
using TextPart = std::vector<size_t>;

struct PartLimits {
  size_t inputs = 32;
  int64_t batch_tokens = 0;    // target
  int64_t request_tokens = 0;  // maximum
  int64_t input_tokens = 0;    // per input, if truncated; 0: unlimited
  int64_t padded_tokens = 0;   // minimum per text
};

// Groups inputs of similar length, longest first. Token counts are estimated from bytes, so that a
// part may turn out to be too large.
std::vector<TextPart> DivideInputs(const TextTask& task, const PartLimits& limits);

// Returns the purpose of the inputs for models of late interaction; empty if the model does not
// distinguish them.
std::string TaskOf(const TextTask& task, const ServedModel& model);

struct PartMessage {
  v1::EncodeRequest request;
  PayloadsByPath payloads;  // of texts; point into the task
};

// Returns the request for a part.
PartMessage MakePartMessage(const TextTask& task, const TextPart& part, const ServedModel& model);

// Returns the request for the query vectors of a task that interacts.
PartMessage MakeQueryMessage(const TextTask& task, const ServedModel& model);

// Makes a part's request score its texts against these query vectors, FLOAT32 [Q, P].
void ScoreBy(const CheckedTensor& query, PartMessage& message);

// Refuses ids of another tokenizer, if the task says so: they lack a special token with which
// this model's ids begin or end. Ids that the client may have truncated or padded need none at the
// end.
absl::Status CheckIds(const TextTask& task, const ServedModel& model);

// Rewrites an error of the query's Encode in terms of the task.
absl::Status NameQuery(const absl::Status& error);

// Rewrites an error of this input's Encode in terms of the task, with the client's name for the
// input.
absl::Status NameInput(const absl::Status& error, const TextTask& task, size_t input);

}  // namespace attendant::server
