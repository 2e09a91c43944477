#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/text_api/json_answer.h"
#include "server/text_api/json_form.h"
#include "server/text_api/openapi_document.h"
#include "server/text_api/text_form.h"

namespace attendant::server {
namespace {

// text-embeddings-inference's root: whatever the model is for.
class ByModel final : public TextForm {
 public:
  absl::StatusOr<TextTask> Read(const TextRequest& request) override {
    Members members(request);
    if (!members.status().ok()) return members.status();
    if (members.Has("query")) {
      form_ = MakeTeiRerank();
    } else if (members.HasObject("inputs")) {
      form_ = MakeTeiSimilarity();
    } else {
      const std::string model = request.model.empty() ? members.Name("model") : request.model;
      if (!members.status().ok()) return members.status();
      const absl::StatusOr<TextWish> wish = request.main_wish(model);
      if (!wish.ok()) return wish.status();
      form_ = FormFor(*wish);
    }
    return form_->ReadMembers(request, members);
  }

  absl::StatusOr<HttpAnswer> Write(TextTask task, TextResult result) override {
    return form_->Write(std::move(task), std::move(result));
  }

 private:
  static std::unique_ptr<JsonForm> FormFor(TextWish wish) {
    switch (wish) {
      case TextWish::kScores:
        return MakeTeiPredict();
      case TextWish::kSparse:
        return MakeTeiEmbedSparse();
      case TextWish::kEntities:
        return MakeEntities();
      default:
        return MakeTeiEmbed();
    }
  }

  std::unique_ptr<JsonForm> form_;
};

template <std::unique_ptr<JsonForm> (*kMake)()>
std::unique_ptr<TextForm> Make() {
  return kMake();
}

// {"id2label": …, "label2id": …}.
std::string LabelsJson(const std::vector<std::string>& labels) {
  std::vector<std::string> by_id, by_label;
  for (const std::string& label : labels) {
    const std::string name = QuoteJson(label);
    by_label.push_back(absl::StrCat(name, ":", by_id.size()));
    by_id.push_back(absl::StrCat("\"", by_id.size(), "\":", name));
  }
  return absl::StrCat("{\"id2label\":{", absl::StrJoin(by_id, ","), "},\"label2id\":{",
                      absl::StrJoin(by_label, ","), "}}");
}

std::string TypeJson(const TextModelFacts& model) {
  switch (model.main) {
    case TextWish::kScores:
      return absl::StrCat(model.labels.size() == 1 ? "{\"reranker\":" : "{\"classifier\":",
                          LabelsJson(model.labels), "}");
    case TextWish::kEntities:
      return absl::StrCat("{\"token_classifier\":", LabelsJson(model.labels), "}");
    case TextWish::kSparse:
      return "{\"embedding\":{\"pooling\":\"splade\"}}";
    default:
      return absl::StrCat("{\"embedding\":{\"pooling\":", QuoteJson(model.pooling), "}}");
  }
}

// A model has no time of its own here; OpenAI's clients want a number.
std::string ModelJson(const std::string& name) {
  return absl::StrCat("{\"id\":", QuoteJson(name),
                      ",\"object\":\"model\",\"created\":0,\"owned_by\":\"attendant\"}");
}

}  // namespace

const std::vector<TextRoute>& TextRoutes() {
  static const auto& routes = *new std::vector<TextRoute>{
      {"/v1/embeddings", "openai_embeddings", ErrorStyle::kOpenAi, Make<MakeOpenAiEmbeddings>},
      {"/embeddings", "openai_embeddings", ErrorStyle::kOpenAi, Make<MakeOpenAiEmbeddings>},
      {"/v2/embed", "cohere_embed", ErrorStyle::kCohere, Make<MakeCohereEmbed>},
      {"/v2/rerank", "cohere_rerank", ErrorStyle::kCohere, Make<MakeRerank>},
      {"/v1/rerank", "jina_rerank", ErrorStyle::kJina, Make<MakeRerank>},
      {"/embed", "embed", ErrorStyle::kTei, Make<MakeTeiEmbed>},
      {"/embed_all", "embed_all", ErrorStyle::kTei, Make<MakeTeiEmbedAll>},
      {"/embed_sparse", "embed_sparse", ErrorStyle::kTei, Make<MakeTeiEmbedSparse>},
      {"/similarity", "similarity", ErrorStyle::kTei, Make<MakeTeiSimilarity>},
      {"/rerank", "rerank", ErrorStyle::kTei, Make<MakeTeiRerank>},
      {"/predict", "predict", ErrorStyle::kTei, Make<MakeTeiPredict>},
      {"/tokenize", "tokenize", ErrorStyle::kTei, Make<MakeTeiTokenize>},
      {"/entities", "entities", ErrorStyle::kTei, Make<MakeEntities>},
      {"/", "by_model", ErrorStyle::kTei,
       []() -> std::unique_ptr<TextForm> { return std::make_unique<ByModel>(); }}};
  return routes;
}

HttpAnswer ModelListAnswer(const std::vector<std::string>& names) {
  std::vector<std::string> models;
  for (const std::string& name : names) models.push_back(ModelJson(name));
  return JsonBody(
      absl::StrCat("{\"object\":\"list\",\"data\":[", absl::StrJoin(models, ","), "]}"));
}

HttpAnswer ModelAnswer(const std::string& name) { return JsonBody(ModelJson(name)); }

HttpAnswer InfoAnswer(const TextModelFacts& model, const TextServerFacts& server,
                      const TextLimits& limits) {
  const std::string name = QuoteJson(model.name);
  return JsonBody(absl::StrCat(
      "{\"model_id\":", name, ",\"model_sha\":null,\"model_dtype\":", QuoteJson(model.dtype),
      ",\"served_model_name\":", name, ",\"model_type\":", TypeJson(model),
      ",\"max_concurrent_requests\":", server.max_concurrent_requests, ",\"max_input_length\":",
      model.max_input_length, ",\"max_batch_tokens\":", model.max_batch_tokens,
      ",\"max_batch_requests\":null,\"max_client_batch_size\":", limits.texts,
      ",\"auto_truncate\":", limits.truncate ? "true" : "false",
      ",\"tokenization_workers\":1,\"version\":", QuoteJson(server.version),
      ",\"sha\":null,\"docker_label\":null}"));
}

HttpAnswer OpenApiAnswer() { return JsonBody(kOpenApiDocument); }

}  // namespace attendant::server
