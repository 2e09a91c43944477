#include "engine/checkpoint/late_interaction/multi_vector_mask.h"

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"

namespace attendant {
namespace {

constexpr IntegerRange kIdRange = {0, std::numeric_limits<int32_t>::max()};
constexpr int64_t kMostIds = 1 << 16;

// Reads a list of texts that may be absent, or a text in place of a list of one.
std::vector<std::string> ReadTexts(const char* key, const ConfigReader& config) {
  const Json value = config.json().is_object() ? config.json().value(key, Json()) : Json();
  std::vector<std::string> texts;
  if (value.is_null()) return texts;
  for (const Json& text : value.is_array() ? value : Json::array({value})) {
    if (text.is_string()) {
      texts.push_back(text.get<std::string>());
    } else {
      config.Refuse(key, ": expected strings; got ", Describe(text));
    }
  }
  return texts;
}

void SetSkipped(const std::string& path, const std::vector<std::string>& words,
                Tokenization& tokenization, std::vector<std::string>& warnings) {
  if (words.empty()) return;
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

// The usual skip list for documents.
std::vector<std::string> Punctuation() {
  std::vector<std::string> words;
  for (char c = '!'; c <= '~'; ++c) {
    if (absl::ascii_ispunct(static_cast<unsigned char>(c))) words.emplace_back(1, c);
  }
  return words;
}

// Whether punctuation is skipped, by the file's default or flag, whatever list it has.
bool SkipsPunctuation(MaskFile kind, ConfigReader& config) {
  switch (kind) {
    case MaskFile::kModule:
      return false;
    case MaskFile::kPylate:
      return !config.Has({"skiplist_words"});
    case MaskFile::kStanford:
      return config.Boolean({"mask_punctuation"}, true);
  }
  return false;
}

}  // namespace

absl::Status ReadMultiVectorMask(const std::string& path, MaskFile kind, Tokenization& tokenization,
                                 std::vector<std::string>& warnings) {
  TokenSelection& selection = tokenization.selection;
  std::vector<std::string> words;
  RETURN_IF_ERROR(ReadConfigOrDefaults(path, [&](ConfigReader& config) {
    words = ReadTexts("skiplist_words", config);
    if (SkipsPunctuation(kind, config)) words = Punctuation();
    selection.skip_tasks = {"document"};
    if (config.Has({"skiplist_tasks"})) selection.skip_tasks = ReadTexts("skiplist_tasks", config);
    for (const int64_t id : config.Integers({"keep_only_token_ids"}, kIdRange, kMostIds)) {
      selection.only_ids.push_back(static_cast<int32_t>(id));
    }
    if (words.empty()) selection.skip_tasks.clear();
  }));
  SetSkipped(path, words, tokenization, warnings);
  return absl::OkStatus();
}

}  // namespace attendant
