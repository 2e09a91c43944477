// Texts on their way to the server, in as many requests as its limits ask for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/commands/text/text_input.h"
#include "client/messages.h"

namespace attendant::client {

// Returns the description of a model. FAILED_PRECONDITION, with the server's reason: it takes no
// texts.
absl::StatusOr<ModelInfo> GetTextModel(const Client& client, const std::string& name,
                                       const CallOptions& call);

// A vector for each text.
struct TextVectors {
  Tensor rows;  // float32 [texts, width]
  Execution execution;
};

// Returns the pooled vectors of texts, as `request`, which has no texts of its own, asks for them.
// Keeps several requests under way. Errors name the texts of the request that failed.
absl::StatusOr<TextVectors> EncodeTexts(const Client& client, EncodeRequest request,
                                        const Texts& texts, const ModelInfo& model,
                                        const CallOptions& call);

// Returns the tokens of texts, likewise.
absl::StatusOr<TokenizeResult> TokenizeTexts(const Client& client, TokenizeRequest request,
                                             const Texts& texts, const ModelInfo& model,
                                             const CallOptions& call);

}  // namespace attendant::client
