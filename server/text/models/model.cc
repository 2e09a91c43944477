#include "server/text/models/model.h"

#include "absl/strings/str_cat.h"

namespace attendant::text {

absl::StatusOr<Vocabulary> LoadVocabulary(const Fields& fields) {
  ASSIGN_OR_RETURN(const JsonValue json, fields.Get("vocab"));
  if (!json.is_object()) return Unexpected(fields.PathOf("vocab"), "an object", json);
  Vocabulary vocabulary;
  vocabulary.reserve(json.size());
  absl::Status status;
  json.ForEach([&](absl::string_view token, JsonValue value) {
    const std::optional<uint32_t> id = value.AsId();
    if (!id.has_value() || *id >= Model::kNoId) {
      status = Unexpected(absl::StrCat(fields.PathOf("vocab"), "[\"", token.substr(0, 100), "\"]"),
                          "an id", value);
    } else if (token.size() > kMaxTokenBytes) {
      status = Unexpected(fields.PathOf("vocab"),
                          absl::StrCat("tokens of at most ", kMaxTokenBytes, " bytes"),
                          absl::StrCat(token.size()));
    } else {
      vocabulary.emplace_back(token, *id);
    }
  });
  if (!status.ok()) return status;
  return vocabulary;
}

absl::string_view ModelType(JsonValue model) {
  if (const auto type = model.Find("type")) return type->text();
  if (model.Find("merges")) return "BPE";
  if (model.Find("continuing_subword_prefix")) return "WordPiece";
  const std::optional<JsonValue> vocabulary = model.Find("vocab");
  return vocabulary.has_value() && vocabulary->is_array() ? "Unigram" : "WordLevel";
}

absl::StatusOr<std::unique_ptr<Model>> LoadModel(const Fields& fields,
                                                 absl::Span<const double> scores,
                                                 Vocabulary& vocabulary) {
  struct Kind {
    absl::string_view type;
    absl::StatusOr<std::unique_ptr<Model>> (*load)(const Fields&, Vocabulary&);
  };
  constexpr Kind kKinds[] = {
      {"WordPiece", LoadWordPiece}, {"BPE", LoadBpe}, {"WordLevel", LoadWordLevel}};
  if (const auto given = fields.json().Find("type"); given.has_value() && !given->is_string()) {
    return Unexpected(fields.PathOf("type"), "a string", *given);
  }
  const absl::string_view type = ModelType(fields.json());
  if (type == "Unigram") return LoadUnigram(fields, scores, vocabulary);
  for (const Kind& kind : kKinds) {
    if (kind.type == type) return kind.load(fields, vocabulary);
  }
  return Unsupported(fields.PathOf("type"), fields.Find("type")->Describe(),
                     "WordPiece, BPE, Unigram or WordLevel");
}

}  // namespace attendant::text
