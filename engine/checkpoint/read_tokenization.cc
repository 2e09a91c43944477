#include "engine/checkpoint/read_tokenization.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"
#include "engine/checkpoint/late_interaction/text_lengths.h"
#include "engine/checkpoint/sentence_transformers.h"

namespace attendant {
namespace {

// A tokenizer_config.json lists every token that was added to the vocabulary.
constexpr JsonLimits kTokenizerLimits = {
    .max_bytes = int64_t{16} << 20, .max_depth = 32, .max_values = int64_t{1} << 22};

// The names under which sentence-transformers looks for the settings of its Transformer module.
constexpr const char* kSentenceConfigs[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

constexpr const char* kRoles[] = {"cls", "sep", "pad", "mask", "unk", "bos", "eos"};

// Reads a JSON object that may be absent. Problems become warnings, and an empty object is
// returned.
Json ReadLeniently(const std::string& path, std::vector<std::string>& warnings) {
  if (!PathExists(path)) return Json::object();
  absl::StatusOr<Json> read = ReadJsonFile(path, kTokenizerLimits);
  if (read.ok() && read->is_object()) return *std::move(read);
  warnings.push_back(read.ok() ? absl::StrCat(path, ": expected an object; got ", Describe(*read))
                               : std::string(read.status().message()));
  return Json::object();
}

// Parses a tokenizer.json, in which some parts must be there.
absl::StatusOr<Json> ParseAndCheck(const std::string& tokenizer) {
  if (tokenizer.empty()) return absl::InvalidArgumentError("expected JSON; the file is empty");
  Json parsed = ParseTokenizer(tokenizer);
  if (parsed.is_discarded()) return absl::InvalidArgumentError("not strict JSON in UTF-8");
  if (!parsed.is_object() || !parsed.value("model", Json()).is_object()) {
    return absl::InvalidArgumentError("expected an object with an object model");
  }
  if (!parsed.emplace("added_tokens", Json::array()).first->is_array()) {
    return absl::InvalidArgumentError("expected an object with a list of added_tokens");
  }
  return parsed;
}

// Reads tokenizer.json, and returns the ids of its added tokens. A file that cannot be read is a
// warning: the model takes token ids without it.
std::map<std::string, int32_t> ReadTokenizer(const std::string& folder, Tokenization& read,
                                             std::vector<std::string>& warnings) {
  const std::string path = absl::StrCat(folder, "/tokenizer.json");
  absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxTokenizerBytes);
  if (absl::IsNotFound(text.status()) && !PathExists(path)) {
    read.why_no_tokenizer = "its directory has no tokenizer.json";
    return {};
  }
  const absl::StatusOr<Json> parsed =
      text.ok() ? ParseAndCheck(*text) : absl::StatusOr<Json>(text.status());
  if (parsed.ok()) {
    read.tokenizer_json = *std::move(text);
    read.why_no_tokenizer.clear();
    read.truncates_left = ReadTruncation(parsed->value("truncation", Json())).is_left;
    return ReadTokenIds(*parsed);
  }
  absl::string_view reason = parsed.status().message();
  absl::ConsumePrefix(&reason, path + ": ");
  read.why_no_tokenizer = absl::StrCat("its tokenizer.json cannot be read: ", reason);
  warnings.push_back(absl::StrCat(path, ": ", reason, "; the model takes only token ids"));
  return {};
}

// Keeps the contents of a file, if it is there and can be read.
void Keep(const std::string& path, const std::string& name, Tokenization& read) {
  if (!PathExists(path)) return;
  absl::StatusOr<std::string> text = ReadSmallFile(path, kMaxTokenizerBytes);
  if (text.ok()) read.files[name] = *std::move(text);
}

void KeepFiles(const std::string& transformer, Tokenization& read) {
  for (const char* name :
       {"tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "config.json"}) {
    Keep(absl::StrCat(transformer, "/", name), name, read);
  }
  if (read.files.contains("tokenizer.json")) return;
  for (const char* name : {"spiece.model", "spm.model", "sentencepiece.bpe.model",
                           "sentencepiece.model", "tokenizer.model"}) {
    Keep(absl::StrCat(transformer, "/", name), name, read);
  }
}

void ReadSpecialTokens(const std::string& folder, const Json& config,
                       const std::map<std::string, int32_t>& ids, Tokenization& read,
                       std::vector<std::string>& warnings) {
  if (read.tokenizer_json.empty()) return;
  const Json older = ReadLeniently(absl::StrCat(folder, "/special_tokens_map.json"), warnings);
  for (const char* role : kRoles) {
    const std::string key = absl::StrCat(role, "_token");
    std::string text = TokenTextAt(config, key);
    if (text.empty()) text = TokenTextAt(older, key);
    const auto id = ids.find(text);
    if (!text.empty() && id != ids.end()) read.special_tokens[role] = id->second;
  }
}

// Whether texts are padded before their tokens: the file says so, or the library's class.
bool PadsLeft(const Json& config) {
  constexpr const char* kPadLeft[] = {"GemmaTokenizer", "GemmaTokenizerFast", "Siglip2Tokenizer"};
  const Json side = config.value("padding_side", Json());
  if (side.is_string()) return side == "left";
  return absl::c_linear_search(kPadLeft, config.value("tokenizer_class", Json()));
}

// Sets the side on which texts are truncated if the file says so: it overrides tokenizer.json.
void ReadTruncationSide(const std::string& path, const Json& config, Tokenization& read,
                        std::vector<std::string>& warnings) {
  constexpr Named<bool> kSides[] = {{"right", false}, {"left", true}};
  Problems problems(path);
  ConfigReader reader(config, problems);
  read.truncates_left = reader.Choice<bool>({"truncation_side"}, kSides, read.truncates_left);
  if (const absl::Status status = problems.ToStatus(); !status.ok()) {
    warnings.emplace_back(status.message());
  }
}

// Returns the length at `key`; 0: none. A length without bound is written as 10^30.
int64_t LengthAt(const char* key, const Json& config) {
  const auto found = config.find(key);
  const std::optional<int64_t> length = found == config.end() ? std::nullopt : AsCount(*found);
  return length && *length <= kTextLengthRange.highest ? *length : 0;
}

// Returns the tokenizer's length or, as in sentence-transformers, the model's if that is smaller.
int64_t ReadModelMaxLength(const Json& tokenizer_config, const Json& model_config) {
  constexpr char kLength[] = "model_max_length";
  const char* key = tokenizer_config.contains(kLength) ? kLength : "max_len";  // in old files
  const int64_t length = LengthAt(key, tokenizer_config);
  const int64_t positions = LengthAt("max_position_embeddings", model_config);
  return length == 0 || positions == 0 ? std::max(length, positions) : std::min(length, positions);
}

absl::Status ReadSentenceConfig(const std::string& folder, Tokenization& read,
                                TextLengths& lengths) {
  for (const char* name : kSentenceConfigs) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!PathExists(path)) continue;
    Keep(path, kSentenceConfigs[0], read);
    return ReadConfig(path, [&](ConfigReader& config) {
      read.lower_case = config.Boolean({"do_lower_case"}, false);
      lengths = ReadTextLengths(config);
      CheckTransformerSettings(config);
      if (!config.Has({"max_seq_length"})) return;
      read.max_sequence_length = config.Integer({"max_seq_length"}, kTextLengthRange);
    });
  }
  return absl::OkStatus();
}

// Puts these before the prompts of queries and documents. A prefix is a token, or begins with one.
void AddPrefixes(const std::vector<std::pair<std::string, std::string>>& prefixes,
                 Tokenization& read) {
  std::vector<std::string> texts;
  for (const auto& [task, prefix] : prefixes) {
    std::string& prompt = read.prompts[task];
    prompt = absl::StrCat(prefix, absl::StripPrefix(prompt, prefix));
    texts.push_back(prefix);
  }
  MakeSpecial(texts, read.tokenizer_json);
  const auto file = read.files.find("tokenizer.json");
  if (file != read.files.end()) MakeSpecial(texts, file->second);
}

// Takes what one more file says of lengths. That of documents does not bound queries.
void AddLengths(const TextLengths& own, Tokenization& read, TextLengths& lengths) {
  if (own.document && read.max_sequence_length > 0) {
    read.task_lengths["query"] = read.max_sequence_length;
  }
  if (own.document) read.max_sequence_length = *own.document;
  lengths.FillFrom(own);
}

// Reads PyLate's prefixes and lengths. Texts without a task are documents.
void ReadPylate(ConfigReader& config, Tokenization& read, TextLengths& lengths) {
  std::vector<std::pair<std::string, std::string>> prefixes;
  for (const char* task : {"query", "document"}) {
    const std::string key = absl::StrCat(task, "_prefix");
    if (config.Has({key})) prefixes.emplace_back(task, config.Text({key}));
  }
  AddPrefixes(prefixes, read);
  AddLengths(ReadPylateLengths(config), read, lengths);
}

// Reads the prefixes and lengths of a checkpoint of Stanford's ColBERT.
absl::Status ReadStanford(const std::string& folder, Tokenization& read, TextLengths& lengths) {
  const std::string path = absl::StrCat(folder, "/", kStanfordMetadata);
  return ReadConfigOrDefaults(path, [&](ConfigReader& config) {
    AddPrefixes({{"query", config.Text({"query_token_id"}, "[unused0]") + " "},
                 {"document", config.Text({"doc_token_id"}, "[unused1]") + " "}},
                read);
    AddLengths(ReadStanfordLengths(config), read, lengths);
  });
}

absl::Status ReadPrompts(const std::string& folder, Tokenization& read, TextLengths& lengths) {
  const std::string path = absl::StrCat(folder, "/config_sentence_transformers.json");
  return ReadConfigOrDefaults(path, [&](ConfigReader& config) {
    if (const Json* prompts = config.Object({"prompts"}); prompts != nullptr) {
      for (const auto& [name, prompt] : prompts->items()) {
        if (prompt.is_null()) {
          read.prompts[name] = "";
        } else if (prompt.is_string()) {
          read.prompts[name] = prompt.get<std::string>();
        } else {
          config.Refuse("prompts: expected a string for ", Quoted(name), "; got ",
                        Describe(prompt));
        }
      }
    }
    if (IsPylate(config)) ReadPylate(config, read, lengths);
    read.scores_take_mean = config.Text({"similarity_fn_name"}, "") == "meanmaxsim";
    CheckModelSettings(config);
    read.default_prompt = config.Text({"default_prompt_name"}, "");
    if (read.default_prompt.empty() || read.prompts.contains(read.default_prompt)) return;
    config.Refuse("default_prompt_name: expected the name of a prompt; got ",
                  Quoted(read.default_prompt));
  });
}

// Warns of the files of sentence-transformers, which the library does not read without
// modules.json.
void WarnOfUnreadFiles(const std::string& folder, std::vector<std::string>& warnings) {
  for (const char* name : {kSentenceConfigs[0], "config_sentence_transformers.json"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!PathExists(path)) continue;
    warnings.push_back(
        absl::StrCat(path, ": not used without modules.json, as in sentence-transformers"));
  }
}

}  // namespace

absl::StatusOr<Tokenization> ReadTokenization(const std::string& folder,
                                              const std::string& transformer,
                                              std::vector<std::string>& warnings) {
  Tokenization read;
  KeepFiles(transformer, read);
  const std::map<std::string, int32_t> ids = ReadTokenizer(transformer, read, warnings);
  const std::string config_path = absl::StrCat(transformer, "/tokenizer_config.json");
  const Json config = ReadLeniently(config_path, warnings);
  ReadSpecialTokens(transformer, config, ids, read, warnings);
  read.padding.is_left = PadsLeft(config);
  ReadTruncationSide(config_path, config, read, warnings);
  read.max_sequence_length =
      ReadModelMaxLength(config, ReadObjectOrEmpty(absl::StrCat(transformer, "/config.json")));
  TextLengths lengths;
  if (PathExists(absl::StrCat(folder, "/modules.json"))) {
    RETURN_IF_ERROR(ReadSentenceConfig(transformer, read, lengths));
    RETURN_IF_ERROR(ReadPrompts(folder, read, lengths));
  } else {
    WarnOfUnreadFiles(folder, warnings);
    if (IsStanfordColbert(folder)) {
      RETURN_IF_ERROR(ReadStanford(folder, read, lengths));
    }
  }
  RETURN_IF_ERROR(SetTextLengths(lengths, config, folder, read));
  return read;
}

std::string ReadChatTemplate(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/chat_template.jinja");
  if (PathExists(path)) {
    const absl::StatusOr<std::string> text = ReadSmallFile(path, JsonLimits().max_bytes);
    if (text.ok()) return *text;
  }
  return TextAt(ReadObjectOrEmpty(absl::StrCat(folder, "/tokenizer_config.json")), "chat_template");
}

}  // namespace attendant
