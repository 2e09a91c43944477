#include "engine/checkpoint/late_interaction/query_expansion.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/tokenizer_json.h"

namespace attendant {
namespace {

// The mask tokens that classes of tokenizers have without naming them, but for these classes.
constexpr const char* kUsualMasks[] = {"[MASK]", "<mask>"};
constexpr const char* kPlainClasses[] = {"PreTrainedTokenizerFast", "TokenizersBackend"};
// Families whose embeddings the library sets to zeros at positions that no token attends to.
constexpr const char* kMaskedEmbeddings[] = {"deberta-v2", "esm"};

// Returns a text, such as that of a special token, which may be an object with its content.
std::string TokenText(const Json& config, const char* key) {
  const Json found = config.is_object() ? config.value(key, Json()) : Json();
  const Json text = found.is_object() ? found.value("content", Json()) : found;
  return text.is_string() ? text.get<std::string>() : "";
}

// Whether the tokenizer has this token. A folder without a tokenizer takes no texts.
bool Knows(const Tokenization& read, const std::string& token) {
  if (!read.tokenizer_json.empty()) {
    return ReadTokenIds(read.tokenizer_json, {token}).contains(token);
  }
  if (const auto words = read.files.find("vocab.txt"); words != read.files.end()) {
    const std::vector<absl::string_view> lines = absl::StrSplit(words->second, '\n');
    return std::find(lines.begin(), lines.end(), token) != lines.end();
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
    candidates = {TokenText(config, "mask_token")};
    if (candidates.front().empty()) {
      const std::string own_class = TokenText(config, "tokenizer_class");
      if (std::find(std::begin(kPlainClasses), std::end(kPlainClasses), own_class) ==
          std::end(kPlainClasses)) {
        candidates.insert(candidates.end(), std::begin(kUsualMasks), std::end(kUsualMasks));
      }
      candidates.push_back(TokenText(config, "eos_token"));
    }
  }
  for (const std::string& token : candidates) {
    if (!token.empty() && Knows(read, token)) return token;
  }
  return std::nullopt;
}

}  // namespace

absl::Status SetTextLengths(const TextLengths& lengths, const Json& tokenizer_config,
                            const std::string& path, Tokenization& read) {
  if (lengths.document) read.task_lengths["document"] = *lengths.document;
  if (lengths.query) read.task_lengths["query"] = *lengths.query;
  if (!lengths.expansion || !*lengths.expansion) return absl::OkStatus();
  const TextLengths::Expansion& asked = **lengths.expansion;
  if (asked.cuts) read.task_lengths["query"] = asked.length;
  const std::optional<std::string> token = FindToken(asked.token, tokenizer_config, read);
  if (!token) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": query_expansion: expected ",
        asked.token.empty() ? "a mask token or a token at the end of texts" : Quoted(asked.token),
        " in the tokenizer, found none"));
  }
  if (TokenText(tokenizer_config, "padding_side") == "left") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": query_expansion: not supported with padding_side 'left' in ",
                     "tokenizer_config.json: tokens are added after a query"));
  }
  read.query_expansion = {asked.length, *token, asked.attends};
  return absl::OkStatus();
}

absl::Status SettleQueryExpansion(const std::string& folder, const ModelDescription& model,
                                  bool scores_expansion, Tokenization& tokenization) {
  std::optional<QueryExpansion>& expansion = tokenization.query_expansion;
  if (!tokenization.is_multi_vector && (expansion || !tokenization.task_lengths.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": query_length, document_length, query_expansion: not supported without vectors ",
        "of tokens: expected modules of tokens (Dense, MultiVectorMask, Normalize)"));
  }
  if (!expansion) return absl::OkStatus();
  if (!scores_expansion && !expansion->attended) {
    expansion.reset();
    return absl::OkStatus();
  }
  const bool zeroes = std::find(std::begin(kMaskedEmbeddings), std::end(kMaskedEmbeddings),
                                model.family) != std::end(kMaskedEmbeddings);
  if (zeroes && !expansion->attended) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, ": query_expansion: not supported by the family ", model.family,
        " without attend: its embeddings are zeros at positions that no token attends to"));
  }
  const int64_t longest = model.embeddings ? model.embeddings->longest_sequence() : 0;
  if (longest == 0 || expansion->length <= longest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": query_expansion: expected at most ", longest,
                   " tokens, the model's longest sequence; found ", expansion->length));
}

}  // namespace attendant
