// The models available to text APIs, and their purposes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/model_table.h"
#include "server/request/service_context.h"
#include "server/text_api/text_form.h"

namespace attendant::server {

// The features that a request needs from a model.
struct TextNeed {
  TextWish wish = TextWish::kTokens;
  bool ranks = false;  // kScores by one class or by late interaction
  bool texts = true;   // false: token ids suffice
};

// Returns the model called `name` if it supports the need or, if the name is empty, the only model
// that does. A name may end with kOllamaTag. Errors are about the member "model".
absl::StatusOr<std::shared_ptr<const ServedModel>> ChooseTextModel(const ModelTable& models,
                                                                   const std::string& name,
                                                                   const TextNeed& need);

// Returns whether the model makes token vectors for late interaction.
bool IsMultiVector(const ServedModel& model);

// Returns the model's main purpose; kVectors by default.
TextWish MainWish(const ServedModel& model);

// Returns the width of text vectors; 0 if the model has none.
int64_t TextVectorWidth(const ServedModel& model);

// Returns the names and aliases of models that take texts, in ascending order.
std::vector<std::string> TextModelNames(const ModelTable& models);

// Returns the response to GET /info about the model that the client calls `name`.
HttpAnswer InfoAnswer(const ServedModel& model, const std::string& name,
                      const ServiceLimits& limits, const std::string& version);

// Returns a command that sends a text to the first model with text vectors at the HTTP port's
// `url`, which ends with a slash; "" without such a model.
std::string ExampleOfTexts(const ModelTable& models, const std::string& url, bool wants_token);

}  // namespace attendant::server
