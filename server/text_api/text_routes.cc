#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "server/http/json_answer.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/json_form.h"
#include "server/text_api/openapi_document.h"
#include "server/text_api/text_form.h"

namespace attendant::server {
namespace {

// The reader for a route that follows the model's purpose: the root of text-embeddings-inference.
absl::StatusOr<decltype(TextRoute::read)> ReaderByModel(const TextRequest& request,
                                                        Members& members, const TextTask& task) {
  if (members.Has("query")) return ReadTeiRerank;
  if (members.HasObject("inputs")) return ReadTeiSimilarity;
  if (!members.status().ok()) return members.status();
  ASSIGN_OR_RETURN(const TextWish wish, request.main_wish(task.model));
  switch (wish) {
    case TextWish::kScores:
      return ReadTeiPredict;
    case TextWish::kSparse:
      return ReadTeiEmbedSparse;
    case TextWish::kEntities:
      return ReadEntities;
    default:
      return ReadTeiEmbed;
  }
}

// A model has no time of its own here; OpenAI's clients want a number.
std::string ModelJson(const std::string& name) {
  return absl::StrCat("{\"id\":", text::QuoteJson(name),
                      ",\"object\":\"model\",\"created\":0,\"owned_by\":\"attendant\"}");
}

}  // namespace

const std::vector<TextRoute>& TextRoutes() {
  static const auto& routes = *new std::vector<TextRoute>{
      {"/v1/embeddings", "openai_embeddings", ErrorStyle::kOpenAi, ReadOpenAiEmbeddings},
      {"/embeddings", "openai_embeddings", ErrorStyle::kOpenAi, ReadOpenAiEmbeddings},
      {"/v2/embed", "cohere_embed", ErrorStyle::kCohere, ReadCohereEmbed},
      {"/v1/embed", "cohere_embed", ErrorStyle::kCohere, ReadFirstCohereEmbed},
      {"/v2/rerank", "cohere_rerank", ErrorStyle::kCohere, ReadRerank},
      {"/v1/rerank", "jina_rerank", ErrorStyle::kJina, ReadRerank},
      {"/embed", "embed", ErrorStyle::kTei, ReadTeiEmbed},
      {"/embed_all", "embed_all", ErrorStyle::kTei, ReadTeiEmbedAll},
      {"/embed_sparse", "embed_sparse", ErrorStyle::kTei, ReadTeiEmbedSparse},
      {"/similarity", "similarity", ErrorStyle::kTei, ReadTeiSimilarity},
      {"/rerank", "rerank", ErrorStyle::kTei, ReadTeiRerank},
      {"/predict", "predict", ErrorStyle::kTei, ReadTeiPredict},
      {"/tokenize", "tokenize", ErrorStyle::kTei, ReadTeiTokenize},
      {"/entities", "entities", ErrorStyle::kTei, ReadEntities},
      {"/invocations", "by_model", ErrorStyle::kTei, nullptr},  // SageMaker
      {"/", "by_model", ErrorStyle::kTei, nullptr},
      {"/api/embed", "ollama_embed", ErrorStyle::kOllama, ReadOllamaEmbed},
      {"/api/embeddings", "ollama_embed", ErrorStyle::kOllama, ReadOllamaEmbeddings}};
  return routes;
}

absl::StatusOr<TextForm> ReadText(const TextRoute& route, const TextRequest& request) {
  Members members(request);
  TextForm form;
  form.task.model = request.model.empty() ? members.Name("model") : request.model;
  auto read = route.read;
  if (read == nullptr) {
    ASSIGN_OR_RETURN(read, ReaderByModel(request, members, form.task));
  }
  form.write = read(members, form.task);
  if (!members.status().ok()) return members.status();
  return form;
}

absl::StatusOr<HttpAnswer> WriteText(TextForm form, TextResult result) {
  const auto finite = [](float number) { return std::isfinite(number); };
  bool all = absl::c_all_of(result.numbers, finite);
  for (const auto& of_input : result.sparse) {
    all = all && absl::c_all_of(of_input, [&](SparseEntry one) { return finite(one.weight); });
  }
  if (!all) {
    return TextError(TextErrorKind::kFailed,
                     "the model's output contains NaN or infinity, which JSON cannot represent");
  }
  return form.write(std::make_shared<DoneText>(DoneText{std::move(form.task), std::move(result)}));
}

HttpAnswer ModelListAnswer(const std::vector<std::string>& names) {
  std::vector<std::string> models;
  for (const std::string& name : names) models.push_back(ModelJson(name));
  return JsonBody(
      absl::StrCat("{\"object\":\"list\",\"data\":[", absl::StrJoin(models, ","), "]}"));
}

HttpAnswer ModelAnswer(const std::string& name) { return JsonBody(ModelJson(name)); }

HttpAnswer OpenApiAnswer() { return JsonBody(kOpenApiDocument); }

}  // namespace attendant::server
