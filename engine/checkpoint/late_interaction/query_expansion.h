// The lengths of texts by their task, and the token that makes queries longer.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/tokenization.h"
#include "engine/checkpoint/late_interaction/text_lengths.h"
#include "engine/model/model_description.h"

namespace attendant {

// Sets the lengths of `read`, which has its tokenizer's files, and how it expands queries.
// `tokenizer_config` names the special tokens. INVALID_ARGUMENT, with the file `path` that asks for
// an expansion, if its token is not one of the tokenizer, or would come before the text.
absl::Status SetTextLengths(const TextLengths& lengths, const Json& tokenizer_config,
                            const std::string& path, Tokenization& read);

// Checks, once the model's heads are known, that it supports the lengths and the expansion that its
// files ask for. Without `scores_expansion` (a MultiVectorMask) tokens that nothing attends to make
// no difference, and are left out. INVALID_ARGUMENT names `folder`.
absl::Status SettleQueryExpansion(const std::string& folder, const ModelDescription& model,
                                  bool scores_expansion, Tokenization& tokenization);

}  // namespace attendant
