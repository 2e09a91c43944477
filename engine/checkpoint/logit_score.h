// The head of rerankers that are causal language models: the logit of "yes" minus the logit of "no"
// after a prompt with a query and a document (sentence-transformers' LogitScore).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/tensor_part.h"
#include "engine/checkpoint/files/weight_binder.h"

namespace attendant {

// Describes a classifier of one class on the last token and binds its weight, the difference of two
// rows of the output embedding: lm_head.weight, or the table of words, which is in one of `words`.
// `config` is the config.json of a LogitScore module, with the ids of both rows; if it is empty,
// the tokens are "yes" and "no", the defaults of CrossEncoder. Messages begin with `folder`. Pairs
// of texts get the template of Qwen3-Reranker if `config` is empty, or if the library renders pairs
// by the folder's chat template and that is this one; the template's instruction is the default
// prompt, or the published one. Does nothing else with a chat template, and adds a warning.
absl::Status AddLogitScore(const std::string& folder, const std::string& config,
                           absl::Span<const TensorPart> words, Checkpoint& checkpoint,
                           WeightBinder& binder);

}  // namespace attendant
