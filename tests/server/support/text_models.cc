#include "tests/server/support/text_models.h"

#include <stdexcept>

#include "absl/strings/str_join.h"
#include "server/text/tokenizer_files.h"

namespace attendant::server {

std::shared_ptr<const ModelTokenizer> TextTokenizer() {
  static const auto made = [] {
    auto loaded = text::LoadTokenizerFiles({{"vocab.txt", absl::StrJoin(kTextWords, "\n")}});
    if (!loaded.ok()) throw std::runtime_error(std::string(loaded.status().message()));
    auto model_tokenizer = std::make_shared<ModelTokenizer>();
    model_tokenizer->tokenizer = std::move(loaded->tokenizer);
    model_tokenizer->why_none.clear();
    model_tokenizer->bytes_per_second = 1e6;
    return std::shared_ptr<const ModelTokenizer>(std::move(model_tokenizer));
  }();
  return made;
}

std::shared_ptr<ServedModel> WithTexts(const ServedModel& model) {
  auto copy = std::make_shared<ServedModel>(model);
  copy->tokenizer = TextTokenizer();
  Tokenization tokenization = *model.tokenization;
  tokenization.max_sequence_length = 8;
  tokenization.prompts = {{"query", "query: "}, {"none", ""}};
  tokenization.special_tokens = {{"cls", 2}, {"sep", 3}};
  copy->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
  return copy;
}

void TruncateOnTheLeft(ServedModels& models, const std::string& name, int64_t length) {
  auto model = std::make_shared<ServedModel>(*models.at(name));
  Tokenization tokenization = *model->tokenization;
  tokenization.truncates_left = true;
  if (length > 0) tokenization.max_sequence_length = length;
  model->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
  models[name] = model;
}

ServedModels TextModels() {
  ServedModels models = TestModels();
  for (const char* name : {"tiny", "counting"}) models[name] = WithTexts(*models[name]);
  return models;
}

}  // namespace attendant::server
