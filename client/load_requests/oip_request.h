// Requests of the Open Inference Protocol, as clients of Triton and KServe send them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/prepared_request.h"
#include "client/tensor.h"

namespace attendant::client {

// The parts of a ModelInferRequest.
struct OipRequest {
  std::string model;             // "NAME", or "NAME.hidden" where hidden states need that
  std::string input;             // "input_ids" or "hidden_states"
  Tensor rows;                   // [B, S] or [B, S, E]
  std::vector<int64_t> lengths;  // of each of the B sequences; the rest of its row is padding
  std::string output;            // the only one that is asked for
};

// Returns a call of ModelInfer with raw tensor contents. It has an attention_mask if any row is
// padded.
PreparedRequest MakeOipRequest(OipRequest request);

}  // namespace attendant::client
