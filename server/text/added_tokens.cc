#include "server/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/base/unicode.h"

namespace attendant::text {
namespace {

constexpr size_t kMaxAddedBytes = 256;

// Reads a token with its id.
absl::StatusOr<AddedToken> ReadToken(JsonValue json, const std::string& field) {
  ASSIGN_OR_RETURN(const Fields fields, Fields::Open(json, field));
  AddedToken token;
  ASSIGN_OR_RETURN(token.id, fields.Id("id"));
  ASSIGN_OR_RETURN(token.content, fields.String("content"));
  RETURN_IF_ERROR(ReadFlags(fields, /*required=*/true, token.flags));
  const absl::Status special = fields.Bool("special").status();  // only matters for decoding
  if (!special.ok()) return special;
  return token;
}

}  // namespace

absl::Status ReadFlags(const Fields& fields, bool required, AddedTokenFlags& flags) {
  const std::pair<absl::string_view, bool*> all[] = {{"single_word", &flags.single_word},
                                                     {"lstrip", &flags.lstrip},
                                                     {"rstrip", &flags.rstrip},
                                                     {"normalized", &flags.normalized}};
  for (const auto& [key, flag] : all) {
    ASSIGN_OR_RETURN(*flag, required ? fields.Bool(key) : fields.Bool(key, *flag));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> AddedTokenList::Add(const AddedTokenSetting& token) {
  if (token.content.size() > kMaxAddedBytes) {
    return Unexpected("content", absl::StrCat("at most ", kMaxAddedBytes, " bytes"),
                      absl::StrCat(token.content.size()));
  }
  if (token.content.empty()) return false;
  const auto [before, is_new] = known_.try_emplace(token.content, tokens_.size());
  if (!is_new) {
    AddedTokenFlags& flags = tokens_[before->second].flags;
    const bool changes = !(flags == token.flags);
    flags = token.flags;
    return changes;
  }
  uint32_t id = model_.Find(token.content);
  if (id == Model::kNoId) id = std::max(model_.size(), ids_);
  ids_ = std::max(ids_, id + 1);
  tokens_.push_back({id, token.content, token.flags});
  return true;
}

absl::Status AddedTokenList::AddAll(JsonValue json) {
  if (!json.is_array()) return Unexpected("added_tokens", "an array", json);
  const std::vector<JsonValue> list = json.Elements();
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string field = absl::StrCat("added_tokens[", i, "]");
    ASSIGN_OR_RETURN(const AddedToken token, ReadToken(list[i], field));
    const absl::Status added = Add({token.content, token.flags}).status();
    if (!added.ok()) return absl::Status(added.code(), absl::StrCat(field, ".", added.message()));
    if (token.content.empty()) continue;
    const uint32_t id = tokens_[known_[token.content]].id;
    if (id == token.id) continue;
    return Unexpected(absl::StrCat(field, ".id"),
                      absl::StrCat(id, " (its place in the vocabulary, or the next one after it)"),
                      absl::StrCat(token.id));
  }
  return absl::OkStatus();
}

absl::StatusOr<AddedTokens> AddedTokens::Make(std::vector<AddedToken> tokens,
                                              const Normalizer& normalizer) {
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  AddedTokens made;
  std::vector<std::pair<std::string, uint32_t>> entries[2];
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    const bool normalized = tokens[i].flags.normalized;
    std::string content = tokens[i].content;
    if (normalized) {
      Items items;
      AppendItems(content, items);
      normalizer.apply(items);
      content = ToUtf8(items);
    }
    if (content.empty()) {
      return Unsupported("added_tokens",
                         absl::StrCat("a token that the normalizer removes (",
                                      QuoteJson(tokens[i].content), ") is"),
                         "\"normalized\": false");
    }
    made.first_[normalized][ToCodes(content)[0] % kFirsts] = true;
    entries[normalized].emplace_back(std::move(content), i);
  }
  for (int i = 0; i < 2; ++i) made.tries_[i] = ByteTrie(std::move(entries[i]));
  made.tokens_ = std::move(tokens);
  return made;
}

std::string AddedTokens::Text(uint32_t id) const {
  const auto found =
      std::lower_bound(tokens_.begin(), tokens_.end(), id,
                       [](const AddedToken& token, uint32_t wanted) { return token.id < wanted; });
  if (found == tokens_.end() || found->id != id) return "";
  if (!found->flags.normalized) return found->content;
  return tries_[true].Text(static_cast<uint32_t>(found - tokens_.begin()));
}

std::pair<uint32_t, uint32_t> AddedTokens::Longest(const Items& items, uint32_t at, uint32_t last,
                                                   const ByteTrie& trie) const {
  std::pair<uint32_t, uint32_t> longest = {at, ByteTrie::kNoValue};
  ByteTrie::Node node = trie.root();
  std::string bytes;
  for (; at < last; ++at) {
    const char32_t code = items[at].code;
    if (code < 0x80) {
      node = trie.Child(node, static_cast<unsigned char>(code));
    } else {
      bytes.clear();
      AppendUtf8(code, bytes);
      node = trie.Walk(node, bytes);
    }
    if (node == ByteTrie::kNone) break;
    if (trie.Value(node) != ByteTrie::kNoValue) longest = {at + 1, trie.Value(node)};
  }
  return longest;
}

void AddedTokens::Find(const Items& items, Piece text, bool normalized,
                       std::vector<Piece>& pieces) const {
  const ByteTrie& trie = tries_[normalized];
  const uint16_t* flags = CodeFlags();
  uint32_t rest = text.first;  // where the text after the last token begins
  for (uint32_t at = text.first; at < text.last && trie.size() > 0;) {
    if (!first_[normalized][items[at].code % kFirsts]) {
      ++at;
      continue;
    }
    const auto [end, which] = Longest(items, at, text.last, trie);
    if (which == ByteTrie::kNoValue) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[which];
    const bool within_word = (at > text.first && HasFlag(flags, items[at - 1].code, kWord)) ||
                             (end < text.last && HasFlag(flags, items[end].code, kWord));
    uint32_t first = at, last = end;
    at = end;
    if (token.flags.single_word && within_word) continue;
    // Whitespace that the token before has taken is taken.
    if (token.flags.lstrip) first = std::max(first, rest);
    while (token.flags.lstrip && first > rest &&
           HasFlag(flags, items[first - 1].code, kWhitespace)) {
      --first;
    }
    while (token.flags.rstrip && last < text.last &&
           HasFlag(flags, items[last].code, kWhitespace)) {
      ++last;
    }
    if (first >= last) continue;  // it is whitespace, and taken
    if (first > rest) pieces.push_back({rest, first});
    pieces.push_back({first, last, token.id});
    rest = last;
  }
  if (rest < text.last) pieces.push_back({rest, text.last});
}

}  // namespace attendant::text
