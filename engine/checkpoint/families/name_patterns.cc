#include "engine/checkpoint/families/name_patterns.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

// Replaces the number after `word` by `sign`: "layer.12.key" becomes "layer.{i}.key", with "12" in
// `number`, for the word "layer." and the sign "{i}".
std::string TakeNumber(const std::string& canonical, const std::string& word, const char* sign,
                       std::string& number) {
  const size_t at = canonical.find(word);
  if (at == std::string::npos) return canonical;
  const size_t begin = at + word.size(), end = canonical.find('.', begin);
  number = canonical.substr(begin, end - begin);
  return absl::StrCat(canonical.substr(0, begin), sign, canonical.substr(end));
}

int64_t NumberOf(const std::string& digits) {
  int64_t number = 0;
  return absl::SimpleAtoi(digits, &number) ? number : 0;
}

}  // namespace

std::vector<TensorPart> PlacesInFile(std::initializer_list<const NamePatterns*> lists,
                                     const std::string& prefix, const std::string& canonical) {
  std::string layer, block, expert;
  const std::string wanted = TakeNumber(
      TakeNumber(TakeNumber(canonical, "layer.", "{i}", layer), "}.before.", "{j}", block),
      "}.expert.", "{e}", expert);
  std::vector<TensorPart> places;
  const auto add = [&](const NamePattern& pattern) {
    absl::string_view suffix = wanted;
    if (!absl::ConsumePrefix(&suffix, pattern.canonical)) return;
    if (!suffix.empty() && suffix != ".weight" && suffix != ".bias") return;
    absl::string_view in_file = pattern.in_file;
    const bool is_outside = absl::ConsumePrefix(&in_file, "/");
    const std::string stem = absl::StrCat(
        is_outside ? "" : prefix, absl::StrReplaceAll(in_file, {{"{i}", layer}, {"{j}", block}}));
    TensorPart& place = places.emplace_back(
        TensorPart{absl::StrCat(stem, suffix), pattern.rows, pattern.unit, pattern.transposed});
    if (pattern.unit == RowUnit::kExpert) place.rows.index = NumberOf(expert);
    if (absl::EndsWith(stem, ".LayerNorm")) {  // the names in files converted from TensorFlow
      places.push_back(
          {absl::StrCat(stem, suffix == ".weight" ? ".gamma" : ".beta"), pattern.rows});
    }
  };
  for (const NamePatterns* names : lists) {
    for (const NamePattern& pattern : *names) add(pattern);
  }
  return places;
}

NamePatterns JoinNames(std::initializer_list<NamePatterns> lists) {
  NamePatterns joined;
  for (const NamePatterns& list : lists) {
    std::erase_if(joined, [&](const NamePattern& earlier) {
      return absl::c_any_of(
          list, [&](const NamePattern& own) { return own.canonical == earlier.canonical; });
    });
    joined.insert(joined.end(), list.begin(), list.end());
  }
  return joined;
}

NamePatterns Stacked(const std::vector<std::string>& weights, const std::string& in_file,
                     RowUnit unit) {
  NamePatterns names;
  for (const std::string& weight : weights) {
    names.push_back({weight, in_file, {std::ssize(names), std::ssize(weights)}, unit});
  }
  return names;
}

NamePatterns StackedInputs(const std::string& in_file, RowUnit unit) {
  return Stacked({"layer.{i}.query", "layer.{i}.key", "layer.{i}.value"}, in_file, unit);
}

NamePatterns LayerNames(const std::string& layer, const std::array<const char*, 8>& names) {
  static const auto& parts = *new std::vector<std::string>(
      absl::StrSplit("query key value output attention_norm feed_forward_in feed_forward_out "
                     "feed_forward_norm",
                     ' '));
  NamePatterns patterns;
  for (size_t i = 0; i < names.size(); ++i) {
    patterns.push_back({"layer.{i}." + parts[i], layer + names[i]});
  }
  return patterns;
}

NamePatterns BertEmbeddingNames() {
  return {{"embeddings.word", "embeddings.word_embeddings.weight"},
          {"embeddings.position", "embeddings.position_embeddings.weight"},
          {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
          {"embeddings.norm", "embeddings.LayerNorm"}};
}

NamePatterns BertNames() {
  return JoinNames(
      {BertEmbeddingNames(),
       LayerNames("encoder.layer.{i}.",
                  {"attention.self.query", "attention.self.key", "attention.self.value",
                   "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
                   "output.dense", "output.LayerNorm"}),
       {{"embeddings.projection", "embeddings_project"}, {"pooling.dense", "pooler.dense"}}});
}

NamePatterns JinaRobertaNames() {
  const std::string layer = "encoder.layers.{i}.";
  return JoinNames({StackedInputs(layer + "mixer.Wqkv"),
                    {{"embeddings.norm", "emb_ln"},
                     {"layer.{i}.output", layer + "mixer.out_proj"},
                     {"layer.{i}.attention_norm", layer + "norm1"},
                     {"layer.{i}.feed_forward_in", layer + "mlp.fc1"},
                     {"layer.{i}.feed_forward_out", layer + "mlp.fc2"},
                     {"layer.{i}.feed_forward_norm", layer + "norm2"}}});
}

NamePatterns BartLayerNames() {
  return JoinNames(
      {LayerNames("encoder.layers.{i}.",
                  {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj",
                   "self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"}),
       {{"exit_norm", "encoder.layer_norm"}}});
}

NamePatterns ClassifierNames(const std::string& dense, const std::string& output) {
  return {{"classifier.dense", dense}, {"classifier.output", output}};
}

NamePatterns VocabularyHeadNames(const std::string& dense, const std::string& norm,
                                 const std::string& decoder, const std::string& bias) {
  NamePatterns names = {{"vocabulary_head.dense", dense},
                        {"vocabulary_head.dense_norm", norm},
                        {"vocabulary_head.output", decoder}};
  if (!bias.empty()) names.push_back({"vocabulary_head.output.bias", bias});
  names.push_back({"vocabulary_head.output.weight", "embeddings.word_embeddings.weight"});
  return names;
}

NamePatterns BertVocabularyHeadNames() {
  return VocabularyHeadNames("/cls.predictions.transform.dense",
                             "/cls.predictions.transform.LayerNorm", "/cls.predictions.decoder",
                             "/cls.predictions.bias");
}

NamePatterns RobertaVocabularyHeadNames() {
  return VocabularyHeadNames("/lm_head.dense", "/lm_head.layer_norm", "/lm_head.decoder",
                             "/lm_head.bias");
}

}  // namespace attendant
