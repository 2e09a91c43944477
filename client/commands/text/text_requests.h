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

// Returns the pooled vectors of texts, according to `request`, whose texts are unset, or their
// scores [texts, 1] if it has the vectors of a query. Keeps several requests under way. Errors name
// the texts of the request that failed.
absl::StatusOr<TextVectors> EncodeTexts(const Client& client, EncodeRequest request,
                                        const Texts& texts, const ModelInfo& model,
                                        const CallOptions& call);

// Has `request` score texts by late interaction with the query: gets the query's token vectors from
// the model. The request has the model's name and, as far as it matters, the truncation.
absl::Status AddQuery(const Client& client, const std::string& query, const CallOptions& call,
                      EncodeRequest& request);

// Returns the tokens of texts, likewise.
absl::StatusOr<TokenizeResult> TokenizeTexts(const Client& client, TokenizeRequest request,
                                             const Texts& texts, const ModelInfo& model,
                                             const CallOptions& call);

}  // namespace attendant::client
