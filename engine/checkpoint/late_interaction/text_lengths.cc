#include "engine/checkpoint/late_interaction/text_lengths.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"

namespace attendant {
namespace {

constexpr char kStanfordArchitecture[] = "HF_ColBERT";
constexpr int64_t kUsualLength = 32;  // of queries that are expanded

std::optional<int64_t> ReadLength(const char* key, ConfigReader& config) {
  if (!config.Has({key})) return std::nullopt;
  return config.Integer({key}, kTextLengthRange);
}

// Reads the library's query_expansion: null, or an object.
std::optional<TextLengths::Expansion> ReadExpansion(ConfigReader& config) {
  const Json* object = config.Object({"query_expansion"});
  if (object == nullptr) return std::nullopt;
  Problems own("query_expansion");
  ConfigReader reader(*object, own);
  constexpr Named<bool> kStrategies[] = {{"fixed", true}, {"min", false}};
  TextLengths::Expansion expansion;
  expansion.cuts = reader.Choice<bool>({"strategy"}, kStrategies);
  expansion.attends = reader.Boolean({"attend"}, false);
  expansion.token = reader.Text({"token"}, "");
  expansion.length = reader.Integer({"length"}, kTextLengthRange);
  reader.AllowOnly();
  config.problems().AddError(own.ToStatus());
  return expansion;
}

// Mask tokens that tokenizer classes have by default, except these classes.
constexpr const char* kUsualMasks[] = {"[MASK]", "<mask>"};
constexpr const char* kPlainClasses[] = {"PreTrainedTokenizerFast", "TokenizersBackend"};
// Families for which the library zeroes embeddings at positions that no token attends to.
constexpr const char* kMaskedEmbeddings[] = {"deberta-v2", "esm"};

// Whether the tokenizer has this token. A folder without a tokenizer takes no texts.
bool Knows(const Tokenization& read, const std::string& token) {
  if (!read.tokenizer_json.empty()) {
    return ReadTokenIds(read.tokenizer_json, {token}).contains(token);
  }
  if (const auto words = read.files.find("vocab.txt"); words != read.files.end()) {
    const std::vector<absl::string_view> lines = absl::StrSplit(words->second, '\n');
    return absl::c_linear_search(lines, token);
  }
  return !read.files.contains("vocab.json") ||
         Json::parse(read.files.at("vocab.json"), nullptr, /*allow_exceptions=*/false)
             .contains(token);
}

// Returns the token that expands queries; nothing if there is none.
std::optional<std::string> FindToken(const std::string& named, const Json& config,
                                     const Tokenization& read) {
  std::vector<std::string> candidates = {named};
  if (named.empty()) {
    candidates = {TokenTextAt(config, "mask_token")};
    if (candidates.front().empty()) {
      const std::string own_class = TextAt(config, "tokenizer_class");
      if (!absl::c_linear_search(kPlainClasses, own_class)) {
        candidates.insert(candidates.end(), std::begin(kUsualMasks), std::end(kUsualMasks));
      }
      candidates.push_back(TokenTextAt(config, "eos_token"));
    }
  }
  for (const std::string& token : candidates) {
    if (!token.empty() && Knows(read, token)) return token;
  }
  return std::nullopt;
}

}  // namespace

void TextLengths::FillFrom(const TextLengths& other) {
  if (!query) query = other.query;
  if (!document) document = other.document;
  if (!expansion) expansion = other.expansion;
}

TextLengths ReadTextLengths(ConfigReader& config) {
  TextLengths read = {ReadLength("query_length", config), ReadLength("document_length", config)};
  if (config.json().is_object() && config.json().contains("query_expansion")) {
    read.expansion = ReadExpansion(config);
  }
  if (read.expansion && *read.expansion && read.query && *read.query < (*read.expansion)->length) {
    config.Refuse("query_length: expected at least ", (*read.expansion)->length,
                  " (query_expansion.length); got ", *read.query);
  }
  return read;
}

TextLengths ReadPylateLengths(ConfigReader& config) {
  TextLengths read = ReadTextLengths(config);
  if (read.expansion) return read;
  if (!config.Boolean({"do_query_expansion"}, true)) {
    read.expansion.emplace();
    return read;
  }
  TextLengths::Expansion expansion;
  expansion.length = std::exchange(read.query, std::nullopt).value_or(kUsualLength);
  // attend_to_mask_tokens is Stanford's name for it.
  expansion.attends = config.Has({"attend_to_expansion_tokens"})
                          ? config.Boolean({"attend_to_expansion_tokens"})
                          : config.Boolean({"attend_to_mask_tokens"}, false);
  read.expansion.emplace(std::move(expansion));
  return read;
}

bool IsStanfordColbert(const std::string& folder) {
  const Json config = ReadObjectOrEmpty(absl::StrCat(folder, "/config.json"));
  const Json found = config.value("architectures", Json());
  return found.is_array() && absl::c_linear_search(found, kStanfordArchitecture);
}

TextLengths ReadStanfordLengths(ConfigReader& config) {
  TextLengths read;
  read.document = ReadLength("doc_maxlen", config);
  TextLengths::Expansion expansion;
  expansion.length = config.Integer({"query_maxlen"}, kTextLengthRange, kUsualLength);
  expansion.attends = config.Boolean({"attend_to_mask_tokens"}, false);
  read.expansion.emplace(std::move(expansion));
  constexpr Named<bool> kSimilarities[] = {{"cosine", true}};
  config.Choice<bool>({"similarity"}, kSimilarities, true);
  constexpr Named<bool> kInteractions[] = {{"colbert", true}};
  config.Choice<bool>({"interaction"}, kInteractions, true);
  return read;
}

absl::Status SetTextLengths(const TextLengths& lengths, const Json& tokenizer_config,
                            const std::string& path, Tokenization& read) {
  if (lengths.document) read.task_lengths["document"] = *lengths.document;
  if (lengths.query) read.task_lengths["query"] = *lengths.query;
  if (!lengths.expansion || !*lengths.expansion) return absl::OkStatus();
  const TextLengths::Expansion& expansion = **lengths.expansion;
  if (expansion.cuts) read.task_lengths["query"] = expansion.length;
  const std::optional<std::string> token = FindToken(expansion.token, tokenizer_config, read);
  if (!token) {
    return InvalidArgument(path, ": query_expansion: the tokenizer has ",
                           expansion.token.empty()
                               ? "neither a mask token nor an end-of-text token"
                               : absl::StrCat("no token ", Quoted(expansion.token)));
  }
  if (TextAt(tokenizer_config, "padding_side") == "left") {
    return InvalidArgument(path, ": query_expansion: not supported with padding_side 'left' in ",
                           "tokenizer_config.json: tokens are added after a query");
  }
  read.query_expansion = {expansion.length, *token, expansion.attends};
  return absl::OkStatus();
}

absl::Status SettleQueryExpansion(const std::string& folder, const ModelDescription& model,
                                  bool scores_expansion, Tokenization& tokenization) {
  std::optional<QueryExpansion>& expansion = tokenization.query_expansion;
  if (!tokenization.is_multi_vector && (expansion || !tokenization.task_lengths.empty())) {
    return InvalidArgument(
        folder,
        ": query_length, document_length, query_expansion: require modules for token vectors ",
        "(Dense, MultiVectorMask, Normalize)");
  }
  if (!expansion) return absl::OkStatus();
  if (!scores_expansion && !expansion->attended) {
    expansion.reset();
    return absl::OkStatus();
  }
  if (!expansion->attended && absl::c_linear_search(kMaskedEmbeddings, model.family)) {
    return InvalidArgument(
        folder, ": query_expansion: not supported by the family ", model.family,
        " without attend: its embeddings are zeros at positions that no token attends to");
  }
  const int64_t longest = model.embeddings ? model.embeddings->longest_sequence() : 0;
  if (longest == 0 || expansion->length <= longest) return absl::OkStatus();
  return InvalidArgument(folder, ": query_expansion: expected at most ", longest,
                         " tokens (the model's longest sequence); got ", expansion->length);
}

}  // namespace attendant
