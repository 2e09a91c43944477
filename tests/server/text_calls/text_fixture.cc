#include "tests/server/text_calls/text_fixture.h"

#include <algorithm>

#include "server/text/tokenizer_files.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace {

void Add(const std::string& name, const ModelDescription& description, Tokenization tokenization,
         ServedModels& models) {
  auto model = std::make_shared<ServedModel>(*ModelOf(name, description).at(name));
  model->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
  model->tokenizer = WordsTokenizer();
  models[name] = std::move(model);
}

}  // namespace

std::shared_ptr<const ModelTokenizer> WordsTokenizer() {
  static const std::shared_ptr<const ModelTokenizer> made = [] {
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (int i = 5; i < 100; ++i) absl::StrAppend(&words, "w", i, "\n");
    auto tokenizer = std::make_shared<ModelTokenizer>();
    tokenizer->bytes_per_second = 1e6;
    text::EffectiveTokenizer loaded = text::LoadTokenizerFiles({{"vocab.txt", words}}).value();
    tokenizer->tokenizer = std::move(loaded.tokenizer);
    tokenizer->unknown_id = loaded.unknown_id;
    return tokenizer;
  }();
  return made;
}

ServedModels ModelsOfTexts() {
  const ModelDescription tiny = TestModels().at("tiny")->encoder->description();
  ServedModels models = {{"bare", TestModels().at("bare")}};
  Tokenization with_prompts;
  with_prompts.prompts = {{"query", "w5 "}, {"document", "w6 "}};
  Add("tiny", tiny, with_prompts, models);
  ModelDescription headed = tiny;
  headed.pooling.reset();
  headed.classifier = {.modes = {PoolingMode::kFirstToken}, .dense_width = 1};
  Tokenization ranks;
  ranks.labels = {"LABEL_0"};
  ranks.class_scores = ranks.rank_scores = ScoreFunction::kSigmoid;
  Add("ranker", headed, ranks, models);
  headed.classifier->dense_width = 3;
  Tokenization classes;
  classes.labels = {"one", "two", "three"};
  classes.class_scores = ScoreFunction::kSoftmax;
  Add("classes", headed, classes, models);
  headed.classifier.reset();
  headed.token_head = {.modes = {}, .dense_width = 3};
  Tokenization labels;
  labels.labels = {"O", "B-PER", "I-PER"};
  Add("labels", headed, labels, models);
  headed.token_head.reset();
  headed.vocabulary_head = {.width = 16};
  Add("words", headed, {}, models);
  return models;
}

std::vector<float> TextFixture::VectorOf(const std::vector<int64_t>& ids, bool normalize) {
  v1::EncodeRequest request;
  request.set_model("tiny");
  *request.mutable_token_ids() = IntegerTensor({1, static_cast<int64_t>(ids.size())}, ids);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  request.set_normalize_pooled(normalize);
  v1::EncodeResponse response;
  EXPECT_TRUE(server().Encode(request, &response).ok());
  return ToFloats(response.pooled());
}

std::vector<float> TextFixture::LogitsOf(const std::string& model, const std::vector<int64_t>& ids,
                                         const std::vector<int64_t>& types) {
  v1::EncodeRequest request;
  request.set_model(model);
  const auto tokens = static_cast<int64_t>(ids.size());
  *request.mutable_token_ids() = IntegerTensor({1, tokens}, ids);
  if (!types.empty()) *request.mutable_token_type_ids() = IntegerTensor({1, tokens}, types);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  request.set_pooling(v1::CLASSIFIER);
  v1::EncodeResponse response;
  EXPECT_TRUE(server().Encode(request, &response).ok());
  return ToFloats(response.pooled());
}

double MaxSimOf(const std::vector<float>& query, const std::vector<float>& document, size_t width) {
  double score = 0;
  for (size_t q = 0; q < query.size(); q += width) {
    double most = -1e9;
    for (size_t d = 0; d < document.size(); d += width) {
      double product = 0;
      for (size_t j = 0; j < width; ++j) product += double{query[q + j]} * document[d + j];
      most = std::max(most, product);
    }
    score += most;
  }
  return score;
}

std::string Words(int count, int first) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, i == 0 ? "w" : " w", 10 + (first - 10 + i) % 90);
  }
  return text;
}

}  // namespace attendant::server
