#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/sentence_transformers.h"

namespace attendant {
namespace {

constexpr IntegerRange kIdRange = {0, std::numeric_limits<int32_t>::max()};
constexpr int64_t kMostIds = 1 << 16;

// Parses what tokenizer.json says about ids: its added tokens, and the vocabulary of its model, of
// whose words only those are kept that `wanted` has, as there are very many.
Json ParseVocabulary(const std::string& tokenizer, const std::vector<std::string>& wanted) {
  bool in_vocabulary = false;
  const Json::parser_callback_t keeps = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event != Json::parse_event_t::key) return true;
    if (depth == 1) {
      in_vocabulary = false;
      return parsed == "added_tokens" || parsed == "model";
    }
    if (depth == 2) {
      in_vocabulary = parsed == "vocab";
      return in_vocabulary;
    }
    return !in_vocabulary || std::find(wanted.begin(), wanted.end(), parsed) != wanted.end();
  };
  return Json::parse(tokenizer, keeps, /*allow_exceptions=*/false);
}

void AddId(const Json& id, const Json& text, std::map<std::string, int32_t>& ids) {
  const std::optional<int64_t> number = AsCount(id);
  if (!number || *number > kIdRange.highest || !text.is_string()) return;
  ids.emplace(text.get<std::string>(), static_cast<int32_t>(*number));
}

// The ids of tokens by their texts; added tokens come before those of the model.
std::map<std::string, int32_t> ReadIds(const std::string& tokenizer,
                                       const std::vector<std::string>& wanted) {
  std::map<std::string, int32_t> ids;
  const Json parsed = ParseVocabulary(tokenizer, wanted);
  if (!parsed.is_object()) return ids;
  for (const Json& token : parsed.value("added_tokens", Json::array())) {
    if (token.is_object()) AddId(token.value("id", Json()), token.value("content", Json()), ids);
  }
  const Json& model = parsed.value("model", Json::object());
  const Json vocabulary = model.is_object() ? model.value("vocab", Json()) : Json();
  if (vocabulary.is_object()) {
    for (const auto& [text, id] : vocabulary.items()) AddId(id, text, ids);
  } else if (vocabulary.is_array()) {  // pairs of a text and its score, in the order of the ids
    for (size_t i = 0; i < vocabulary.size(); ++i) {
      if (vocabulary[i].is_array() && !vocabulary[i].empty()) AddId(i, vocabulary[i][0], ids);
    }
  }
  return ids;
}

// Reads a list of texts that may be absent, or a text in place of a list of one.
std::vector<std::string> ReadTexts(const Json& config, const char* key, Problems& problems) {
  const Json value = config.is_object() ? config.value(key, Json()) : Json();
  std::vector<std::string> texts;
  if (value.is_null()) return texts;
  for (const Json& text : value.is_array() ? value : Json::array({value})) {
    if (text.is_string()) {
      texts.push_back(text.get<std::string>());
    } else {
      problems.Add(absl::StrCat(key, ": expected texts, found ", Describe(text)));
    }
  }
  return texts;
}

void SetSkipped(const std::string& path, const std::vector<std::string>& words,
                Tokenization& tokenization, std::vector<std::string>& warnings) {
  const std::map<std::string, int32_t> ids = ReadIds(tokenization.tokenizer_json, words);
  std::vector<int32_t>& skipped = tokenization.selection.skipped_ids;
  std::vector<std::string> unknown;
  for (const std::string& word : words) {
    const auto found = ids.find(word);
    if (found == ids.end()) {
      unknown.push_back(Quoted(word));
    } else {
      skipped.push_back(found->second);
    }
  }
  std::sort(skipped.begin(), skipped.end());
  if (unknown.empty()) return;
  warnings.push_back(absl::StrCat(path, ": skiplist_words that are no tokens of the tokenizer are ",
                                  "not skipped: ", absl::StrJoin(unknown, ", ")));
}

// Warns if the library appends mask tokens to queries. Clients must do so: the server takes ids.
absl::Status ReadQueryExpansion(const std::string& transformer,
                                std::vector<std::string>& warnings) {
  const std::string path = absl::StrCat(transformer, "/sentence_bert_config.json");
  if (!PathExists(path)) return absl::OkStatus();
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  if (!json->is_object() || json->value("query_expansion", Json()).is_null()) {
    return absl::OkStatus();
  }
  warnings.push_back(absl::StrCat(path, ": query_expansion: clients append the mask tokens of ",
                                  "queries, with attention_bias if they are not attended to; the ",
                                  "server computes the tokens that it gets"));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMultiVectorMask(const SentenceModules& modules, Tokenization& tokenization,
                                 std::vector<std::string>& warnings) {
  if (absl::Status status = ReadQueryExpansion(modules.transformer, warnings); !status.ok()) {
    return status;
  }
  const std::string path = absl::StrCat(modules.mask, "/config.json");
  if (!PathExists(path)) return absl::OkStatus();
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  TokenSelection& selection = tokenization.selection;
  const std::vector<std::string> words = ReadTexts(*json, "skiplist_words", problems);
  selection.skip_tasks = {"document"};
  if (config.Has({"skiplist_tasks"})) {
    selection.skip_tasks = ReadTexts(*json, "skiplist_tasks", problems);
  }
  for (const int64_t id : config.Integers({"keep_only_token_ids"}, kIdRange, kMostIds)) {
    selection.only_ids.push_back(static_cast<int32_t>(id));
  }
  if (words.empty()) selection.skip_tasks.clear();
  if (absl::Status status = problems.ToStatus(); !status.ok()) return status;
  SetSkipped(path, words, tokenization, warnings);
  return absl::OkStatus();
}

}  // namespace attendant
