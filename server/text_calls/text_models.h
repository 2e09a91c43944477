// The models that text APIs may name, and what each of them is for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/models/model_table.h"
#include "server/text_api/text_form.h"

namespace attendant::server {

// The need of a request for a model.
struct TextNeed {
  TextWish wish = TextWish::kTokens;
  bool ranks = false;  // kScores of one class, or of late interaction
  bool texts = true;   // false: it has only token ids
};

// Returns the model called `name` if it can do that, or, if the name is empty, the only model that
// can. Errors are about the member "model".
absl::StatusOr<std::shared_ptr<const ServedModel>> ChooseTextModel(const ModelTable& models,
                                                                   const std::string& name,
                                                                   const TextNeed& need);

// Whether the model makes vectors of tokens for late interaction.
bool IsMultiVector(const ServedModel& model);

// The wish that the model is made for: kVectors if nothing else is.
TextWish MainWish(const ServedModel& model);

// The width of the vectors of texts; 0: the model has none.
int64_t TextVectorWidth(const ServedModel& model);

// The names of models that take texts, and their aliases, ascending.
std::vector<std::string> TextModelNames(const ModelTable& models);

// As /info describes the model that its caller knows as `name`.
TextModelFacts FactsOf(const ServedModel& model, const std::string& name, int64_t max_batch_tokens);

// Returns a command that sends a text to the first model that makes vectors of texts, at the HTTP
// port's `url`, which ends with a slash; "" without such a model.
std::string ExampleOfTexts(const ModelTable& models, const std::string& url, bool wants_token);

}  // namespace attendant::server
