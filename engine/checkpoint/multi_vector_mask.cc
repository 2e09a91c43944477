#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"
#include "engine/checkpoint/sentence_transformers.h"

namespace attendant {
namespace {

constexpr IntegerRange kIdRange = {0, std::numeric_limits<int32_t>::max()};
constexpr int64_t kMostIds = 1 << 16;

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
  const std::map<std::string, int32_t> ids = ReadTokenIds(tokenization.tokenizer_json, words);
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
  warnings.push_back(absl::StrCat(path,
                                  ": skiplist_words that are not tokens of the tokenizer are ",
                                  "not skipped: ", absl::StrJoin(unknown, ", ")));
}

// Clients must append the mask tokens that the library appends to queries: the server takes ids.
void WarnOfExpansion(const std::string& key, std::vector<std::string>& warnings) {
  warnings.push_back(absl::StrCat(key, ": clients append the mask tokens of queries, with ",
                                  "attention_bias if they are not attended to; the server ",
                                  "computes the tokens that it gets"));
}

absl::Status ReadQueryExpansion(const std::string& transformer,
                                std::vector<std::string>& warnings) {
  const std::string path = absl::StrCat(transformer, "/sentence_bert_config.json");
  if (!PathExists(path)) return absl::OkStatus();
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  if (json->is_object() && !json->value("query_expansion", Json()).is_null()) {
    WarnOfExpansion(absl::StrCat(path, ": query_expansion"), warnings);
  }
  return absl::OkStatus();
}

// PyLate's default skip list for documents.
std::vector<std::string> Punctuation() {
  std::vector<std::string> words;
  for (char c = '!'; c <= '~'; ++c) {
    if (absl::ascii_ispunct(static_cast<unsigned char>(c))) words.emplace_back(1, c);
  }
  return words;
}

}  // namespace

absl::Status ReadMultiVectorMask(const SentenceModules& modules, Tokenization& tokenization,
                                 std::vector<std::string>& warnings) {
  if (absl::Status status = ReadQueryExpansion(modules.transformer, warnings); !status.ok()) {
    return status;
  }
  const std::string& path = modules.mask_config;
  if (!PathExists(path)) return absl::OkStatus();
  const absl::StatusOr<Json> json = ReadJsonFile(path, JsonLimits());
  if (!json.ok()) return json.status();
  Problems problems(path);
  ConfigReader config(*json, problems);
  TokenSelection& selection = tokenization.selection;
  std::vector<std::string> words = ReadTexts(*json, "skiplist_words", problems);
  if (modules.is_pylate) {
    if (!config.Has({"skiplist_words"})) words = Punctuation();
    if (config.Boolean({"do_query_expansion"}, true)) {
      WarnOfExpansion(absl::StrCat(path, ": do_query_expansion"), warnings);
    }
  }
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
