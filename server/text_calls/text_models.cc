#include "server/text_calls/text_models.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/model/model_facts.h"
#include "server/http/json_answer.h"
#include "server/models/model_lookup.h"
#include "server/tensors/status_mapping.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/text_error.h"

namespace attendant::server {
namespace {

constexpr size_t kMostNamesTold = 8;

bool TakesTexts(const ServedModel& model) { return model.tokenizer->tokenizer != nullptr; }

bool ScoresTokens(const ServedModel& model) {
  const ModelDescription& description = model.encoder->description();
  return description.token_head && !description.classifier &&
         static_cast<int64_t>(model.tokenization->labels.size()) ==
             description.token_head->width(description.layer.hidden_size);
}

int64_t Classes(const ServedModel& model) {
  const ModelDescription& description = model.encoder->description();
  return description.classifier ? description.classifier->width(description.layer.hidden_size) : 0;
}

bool Fits(const ServedModel& model, const TextNeed& need) {
  const ModelDescription& description = model.encoder->description();
  if (need.texts ? !TakesTexts(model) : !description.embeddings) return false;
  switch (need.wish) {
    case TextWish::kVectors:
      return TextVectorWidth(model) > 0;
    case TextWish::kSparse:
      return description.sparse_width() > 0;
    case TextWish::kScores:
      if (!need.ranks) return Classes(model) > 0;
      return Classes(model) == 1 || IsMultiVector(model);
    case TextWish::kEntities:
      return ScoresTokens(model);
    case TextWish::kTokenVectors:
    case TextWish::kTokens:
      break;
  }
  return true;
}

// Continues "a model that …".
const char* Sentence(const TextNeed& need) {
  switch (need.wish) {
    case TextWish::kVectors:
      return "returns one vector per text";
    case TextWish::kSparse:
      return "returns a sparse vector per text (from an MLM head or a lexical head)";
    case TextWish::kScores:
      return need.ranks ? "is a reranker (scores one class, or returns token vectors)"
                        : "has a classification head";
    case TextWish::kEntities:
      return "has a token classification head";
    case TextWish::kTokenVectors:
    case TextWish::kTokens:
      break;
  }
  return need.texts ? "takes texts" : "takes token ids";
}

// Says why a model does not fit, if it lacks a tokenizer.
std::string WhyNoTexts(const ServedModel& model, const TextNeed& need) {
  if (!need.texts || TakesTexts(model)) return "";
  return absl::StrCat("; it does not accept texts: ", model.tokenizer->why_none);
}

// Returns the model called `name`, or else the one whose name has no tag of Ollama's.
FoundModel FindTextModel(const ModelTable& models, const std::string& name) {
  FoundModel found = FindModel(models, name);
  absl::string_view untagged = name;
  if (found.ok() || !absl::ConsumeSuffix(&untagged, kOllamaTag) || untagged.empty()) return found;
  FoundModel other = FindModel(models, std::string(untagged));
  return other.ok() ? other : found;
}

// {"id2label": …, "label2id": …}.
std::string LabelsJson(const std::vector<std::string>& labels) {
  std::vector<std::string> by_id, by_label;
  for (const std::string& label : labels) {
    const std::string name = text::QuoteJson(label);
    by_label.push_back(absl::StrCat(name, ":", by_id.size()));
    by_id.push_back(absl::StrCat("\"", by_id.size(), "\":", name));
  }
  return absl::StrCat("{\"id2label\":{", absl::StrJoin(by_id, ","), "},\"label2id\":{",
                      absl::StrJoin(by_label, ","), "}}");
}

// The purpose in the form of text-embeddings-inference.
std::string TypeJson(const ServedModel& model) {
  const std::vector<std::string>& labels = model.tokenization->labels;
  const std::optional<PoolingDescription>& pooling = model.encoder->description().pooling;
  switch (MainWish(model)) {
    case TextWish::kScores:
      return absl::StrCat(
          labels.size() == 1 ? "{\"reranker\":" : "{\"classifier\":", LabelsJson(labels), "}");
    case TextWish::kEntities:
      return absl::StrCat("{\"token_classifier\":", LabelsJson(labels), "}");
    case TextWish::kSparse:
      return "{\"embedding\":{\"pooling\":\"splade\"}}";
    default:
      break;
  }
  std::string modes = "mean";
  if (!model.tokenization->texts_take_mean && pooling) {
    modes = absl::StrJoin(pooling->modes, "_", [](std::string* out, PoolingMode mode) {
      absl::StrAppend(out, Name(mode));
    });
  }
  return absl::StrCat("{\"embedding\":{\"pooling\":\"", modes, "\"}}");
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ServedModel>> ChooseTextModel(const ModelTable& models,
                                                                   const std::string& name,
                                                                   const TextNeed& need) {
  if (!name.empty()) {
    FoundModel found = FindTextModel(models, name);
    if (absl::IsNotFound(found.status())) {
      return TextError(TextErrorKind::kNoModel,
                       absl::StrCat(found.status().message(), "; add a name with --alias"));
    }
    if (!found.ok() || Fits(**found, need)) return found;
    return TextError(TextErrorKind::kUnfit,
                     absl::StrCat("model: expected a model that ", Sentence(need), "; got ",
                                  Quote(name), WhyNoTexts(**found, need)));
  }
  std::vector<std::shared_ptr<const ServedModel>> fitting;
  const std::shared_ptr<const ServedModels> served = models.Snapshot();
  for (const auto& [own, model] : *served) {
    if (Fits(*model, need)) fitting.push_back(model);
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty()) {
    return TextError(TextErrorKind::kUnfit, absl::StrCat("model: expected a model that ",
                                                         Sentence(need), "; got none; load one"));
  }
  const size_t told = std::min(kMostNamesTold, fitting.size());
  const std::string names =
      absl::StrJoin(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(told), ", ",
                    [](std::string* out, const auto& model) { absl::StrAppend(out, model->name); });
  return InvalidMember("model",
                       absl::StrCat("one of ", names, told < fitting.size() ? ", …" : "",
                                    ", in the body or as /models/NAME/…"),
                       "none");
}

bool IsMultiVector(const ServedModel& model) {
  return model.encoder->description().token_head && model.tokenization->is_multi_vector;
}

TextWish MainWish(const ServedModel& model) {
  if (TextVectorWidth(model) > 0) return TextWish::kVectors;
  if (Classes(model) > 0) return TextWish::kScores;
  if (ScoresTokens(model)) return TextWish::kEntities;
  return model.encoder->description().sparse_width() > 0 ? TextWish::kSparse : TextWish::kVectors;
}

int64_t TextVectorWidth(const ServedModel& model) {
  const ModelDescription& description = model.encoder->description();
  // A classifier pools for its classes.
  if (description.classifier) return 0;
  const int64_t hidden_size = description.layer.hidden_size;
  if (model.tokenization->texts_take_mean) return hidden_size;
  return description.pooling ? description.pooling->width(hidden_size) : 0;
}

std::vector<std::string> TextModelNames(const ModelTable& models) {
  std::vector<std::string> names;
  const std::shared_ptr<const ServedModels> served = models.Snapshot();
  for (const auto& [name, model] : *served) {
    if (TakesTexts(*model)) names.push_back(name);
  }
  for (const auto& [alias, name] : models.aliases()) {
    const auto found = served->find(name);
    if (found != served->end() && TakesTexts(*found->second)) names.push_back(alias);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ExampleOfTexts(const ModelTable& models, const std::string& url, bool wants_token) {
  const std::shared_ptr<const ServedModels> served = models.Snapshot();
  for (const auto& [name, model] : *served) {
    if (!Fits(*model, {TextWish::kVectors})) continue;
    return absl::StrCat(
        "curl ", url, "v1/embeddings", wants_token ? " -H 'Authorization: Bearer TOKEN'" : "",
        " -d '{\"model\": ", text::QuoteJson(name), ", \"input\": [\"hello world\"]}'");
  }
  return "";
}

HttpAnswer InfoAnswer(const ServedModel& model, const std::string& name,
                      const ServiceLimits& limits, const std::string& version) {
  const std::optional<EmbeddingShape>& embeddings = model.encoder->description().embeddings;
  const std::string quoted = text::QuoteJson(name);
  return JsonBody(absl::StrCat(
      "{\"model_id\":", quoted, ",\"model_sha\":null,\"model_dtype\":\"",
      Name(model.encoder->mode().type), "\",\"served_model_name\":", quoted,
      ",\"model_type\":", TypeJson(model), ",\"max_concurrent_requests\":", limits.max_inflight,
      ",\"max_input_length\":",
      embeddings ? MaxSequenceLength(*embeddings, *model.tokenization) : 0,
      ",\"max_batch_tokens\":", limits.max_batch_tokens,
      ",\"max_batch_requests\":null,\"max_client_batch_size\":", TextLimits().texts,
      ",\"auto_truncate\":true,\"tokenization_workers\":1,\"version\":", text::QuoteJson(version),
      ",\"sha\":null,\"docker_label\":null}"));
}

}  // namespace attendant::server
