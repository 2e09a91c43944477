// The parts in which the inputs of a text task are computed, each a request as Encode takes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/models/served_model.h"
#include "server/request/tokenized_texts.h"
#include "server/text_api/text_task.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

// The indices of inputs that are computed together: all texts, all pairs, or all token ids.
using TextPart = std::vector<size_t>;

struct PartLimits {
  size_t inputs = 32;
  int64_t batch_tokens = 0;    // about as many as this
  int64_t request_tokens = 0;  // never more than this
  int64_t input_tokens = 0;    // of one, where they are cut; 0: any number
  int64_t padded_tokens = 0;   // of a text at least
};

// Inputs of similar lengths go together, long ones first. Tokens are estimated from bytes: a part
// may turn out to be too large.
std::vector<TextPart> DivideInputs(const TextTask& task, const PartLimits& limits);

// Returns the purpose of the inputs, by which models of late interaction tell texts apart; empty:
// it makes no difference to the model.
std::string TaskOf(const TextTask& task, const ServedModel& model);

struct PartMessage {
  v1::EncodeRequest request;
  std::vector<TensorPayload> payloads;  // of texts, point into the task
};

// Returns the texts of a part, with their places, for TokenizeTexts. They point into the task.
TextFields MakeTextFields(const TextTask& task, const TextPart& part, const ServedModel& model);

// Returns the request for a part of a task of any wish but kTokens.
PartMessage MakePartMessage(const TextTask& task, const TextPart& part, const ServedModel& model);

// Returns the request for the vectors of the query of a task that interacts.
PartMessage MakeQueryMessage(const TextTask& task, const ServedModel& model);

// Has the request for a part score its texts by these vectors of the query.
struct QueryTensor {
  std::vector<int64_t> shape;  // [Q, P]
  Payload data;                // FLOAT32
};
void ScoreBy(const QueryTensor& query, PartMessage& message);

// Returns the error of an Encode of the query alone in the words of the task.
absl::Status NameQuery(const absl::Status& error);

// Returns the error of an Encode of this one input in the words of the task: with the name that
// the caller has for the input.
absl::Status NameInput(const absl::Status& error, const TextTask& task, size_t input);

}  // namespace attendant::server
