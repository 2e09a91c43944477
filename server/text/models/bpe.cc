// Byte-pair encoding: characters, or bytes that stand for them, merged by a list of pairs.
#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "server/text/base/byte_characters.h"
#include "server/text/models/bpe_merges.h"
#include "server/text/models/model.h"

namespace attendant::text {
namespace {

struct BpeOptions {
  std::string unk_token;
  bool has_unk = false;
  std::string prefix, suffix;
  bool fuse_unk = false, byte_fallback = false, ignore_merges = false;
};

// The tokens of one character.
class CharacterIds {
 public:
  // Of tokens that begin with `prefix` and end with `suffix`, the character between them counts.
  CharacterIds(const Vocabulary& vocabulary, absl::string_view prefix, absl::string_view suffix) {
    low_.fill(Model::kNoId);
    for (const auto& [token, id] : vocabulary) {
      absl::string_view rest = token;
      if (!absl::ConsumePrefix(&rest, prefix) || !absl::ConsumeSuffix(&rest, suffix)) continue;
      if (rest.empty() || rest.size() > 4) continue;
      const std::u32string codes = ToCodes(rest);
      if (codes.size() != 1) continue;
      (codes[0] < low_.size() ? low_[codes[0]] : high_[codes[0]]) = id;
    }
  }

  uint32_t Find(char32_t code) const {
    if (code < low_.size()) return low_[code];
    const auto found = high_.find(code);
    return found == high_.end() ? Model::kNoId : found->second;
  }

 private:
  std::array<uint32_t, 512> low_;  // which all characters for bytes are among
  absl::flat_hash_map<char32_t, uint32_t> high_;
};

class Bpe : public Model {
 public:
  Bpe(const BpeOptions& options, const Vocabulary& tokens, ByteTrie trie, BpeMerges merges)
      : Model(std::move(trie)),
        options_(options),
        merges_(std::move(merges)),
        unk_id_(options.has_unk ? Find(options.unk_token) : kNoId),
        characters_{CharacterIds(tokens, "", ""), CharacterIds(tokens, "", options_.suffix),
                    CharacterIds(tokens, options_.prefix, ""),
                    CharacterIds(tokens, options_.prefix, options_.suffix)} {
    for (size_t byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] = options_.byte_fallback ? Find(absl::StrFormat("<0x%02X>", byte)) : kNoId;
    }
  }

  size_t tokens_of_item() const override { return options_.byte_fallback ? 4 : 1; }
  size_t scratch_bytes() const override {
    return 2 * sizeof(BpeSymbol) + 4 * sizeof(MergeScratch::Waiting) + sizeof(MergeScratch::Link);
  }

  void Tokenize(ItemSpan piece, ModelScratch& scratch,
                std::vector<ModelToken>& tokens) const override {
    if (options_.ignore_merges) {
      if (const uint32_t id = Find(ToUtf8(piece)); id != kNoId) {
        tokens.push_back({id, 0, static_cast<uint32_t>(piece.size())});
        return;
      }
    }
    scratch.symbols.clear();
    AddSymbols(piece, scratch.symbols);
    merges_.Apply(scratch.symbols, scratch.merging);
    AddTokens(piece, scratch.symbols, tokens);
  }

 private:
  void AddSymbols(ItemSpan piece, std::vector<BpeSymbol>& symbols) const {
    uint32_t unknown = 0;  // bytes of unknown characters that are not symbols yet
    const auto flush = [&] {
      if (unknown > 0) symbols.push_back({unk_id_, unknown});
      unknown = 0;
    };
    for (size_t i = 0; i < piece.size(); ++i) {
      const char32_t code = piece[i].code;
      const uint32_t id =
          characters_[(i == 0 ? 0 : 2) + (i + 1 == piece.size() ? 1 : 0)].Find(code);
      const uint32_t bytes = Utf8Size(code);
      if (id != kNoId) {
        flush();
        symbols.push_back({id, bytes});
      } else if (options_.byte_fallback && AddBytes(code, symbols)) {
        // As in the original, unknown characters before these come after them.
      } else if (unk_id_ != kNoId) {
        if (!options_.fuse_unk) flush();
        unknown += bytes;
      }
    }
    flush();
  }

  bool AddBytes(char32_t code, std::vector<BpeSymbol>& symbols) const {
    std::string bytes;
    AppendUtf8(code, bytes);
    const auto id_of = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
    for (const char byte : bytes) {
      if (id_of(byte) == kNoId) return false;
    }
    for (const char byte : bytes) symbols.push_back({id_of(byte), 1});
    return true;
  }

  // Finds the items of each symbol by counting bytes: after characters that are dropped, these are
  // others, as in the original.
  static void AddTokens(ItemSpan piece, const std::vector<BpeSymbol>& symbols,
                        std::vector<ModelToken>& tokens) {
    uint32_t item = 0, item_end = Utf8Size(piece[0].code), at = 0;
    const auto move_to = [&](uint32_t byte) {
      while (item_end <= byte && item + 1 < piece.size()) {
        item_end += Utf8Size(piece[++item].code);
      }
      return item;
    };
    for (const BpeSymbol& symbol : symbols) {
      const uint32_t first = move_to(at);
      at += symbol.bytes;
      tokens.push_back({symbol.id, first, move_to(at - 1) + 1});
    }
  }

  const BpeOptions options_;
  const BpeMerges merges_;
  const uint32_t unk_id_;
  // In the middle of a piece, at its end, and the same after its beginning.
  const std::array<CharacterIds, 4> characters_;
  std::array<uint32_t, 256> byte_ids_;
};

absl::StatusOr<std::pair<std::string, std::string>> ReadMerge(JsonValue merge,
                                                              const std::string& field) {
  std::vector<std::string> parts;
  if (merge.is_string()) parts = absl::StrSplit(merge.text(), ' ');
  merge.ForEach([&](absl::string_view, JsonValue part) {
    if (part.is_string()) parts.emplace_back(part.text());
  });
  if (parts.size() != 2) return Unexpected(field, "two tokens", merge);
  return std::pair(std::move(parts[0]), std::move(parts[1]));
}

absl::StatusOr<BpeMerges> ReadMerges(const Fields& fields, const ByteTrie& vocabulary,
                                     absl::string_view prefix) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> list, fields.Array("merges"));
  BpeMerges merges(list.size());
  uint32_t rank = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string field = absl::StrCat(fields.PathOf("merges"), "[", i, "]");
    if (list[i].is_string() && absl::StartsWith(list[i].text(), "#version")) continue;
    ASSIGN_OR_RETURN(const auto pair, ReadMerge(list[i], field));
    const auto& [left, right] = pair;
    if (right.size() < prefix.size()) {
      return Unexpected(field, absl::StrCat("a second token with the prefix ", prefix), right);
    }
    uint32_t found[3];
    const std::string tokens[] = {left, right, left + right.substr(prefix.size())};
    for (int j = 0; j < 3; ++j) {
      found[j] = vocabulary.Find(tokens[j]);
      if (found[j] == ByteTrie::kNoValue) {
        return Unexpected(field, "tokens of the vocabulary", absl::StrCat("\"", tokens[j], "\""));
      }
    }
    merges.Add(found[0], found[1], {rank++, found[2]});
  }
  return merges;
}

absl::StatusOr<BpeOptions> ReadOptions(const Fields& fields) {
  BpeOptions options;
  options.has_unk = fields.Find("unk_token").has_value();
  const std::pair<absl::string_view, std::string*> texts[] = {
      {"unk_token", &options.unk_token},
      {"continuing_subword_prefix", &options.prefix},
      {"end_of_word_suffix", &options.suffix}};
  for (const auto& [key, text] : texts) {
    ASSIGN_OR_RETURN(*text, fields.String(key, ""));
  }
  const std::pair<absl::string_view, bool*> flags[] = {{"fuse_unk", &options.fuse_unk},
                                                       {"byte_fallback", &options.byte_fallback},
                                                       {"ignore_merges", &options.ignore_merges}};
  for (const auto& [key, flag] : flags) {
    ASSIGN_OR_RETURN(*flag, fields.Bool(key, false));
  }
  if (options.byte_fallback && !(options.prefix + options.suffix).empty()) {
    return Unexpected(fields.PathOf("byte_fallback"),
                      "false (there is a continuing_subword_prefix or end_of_word_suffix)", "true");
  }
  const std::optional<JsonValue> dropout = fields.Find("dropout");
  if (dropout.has_value() && dropout->text() != "0" && dropout->text() != "0.0") {
    return Unsupported(fields.PathOf("dropout"), dropout->Describe(), "null");
  }
  return options;
}

// Whether each byte has a character in the vocabulary, so that no text is unknown.
bool HasAllBytes(const ByteTrie& vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    AppendUtf8(ByteCharacters()[byte], character);
    if (vocabulary.Find(character) == ByteTrie::kNoValue) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadBpe(const Fields& fields, Vocabulary& vocabulary) {
  RETURN_IF_ERROR(fields.RequireKnown(
      "dropout,unk_token,continuing_subword_prefix,end_of_word_suffix,fuse_unk,byte_fallback,"
      "ignore_merges,vocab,merges"));
  ASSIGN_OR_RETURN(const BpeOptions options, ReadOptions(fields));
  ASSIGN_OR_RETURN(vocabulary, LoadVocabulary(fields));
  ByteTrie trie(vocabulary);
  if (options.has_unk && trie.Find(options.unk_token) == ByteTrie::kNoValue && !HasAllBytes(trie)) {
    return Unexpected(fields.PathOf("unk_token"), "a token of the vocabulary",
                      absl::StrCat("\"", options.unk_token, "\""));
  }
  ASSIGN_OR_RETURN(BpeMerges merges, ReadMerges(fields, trie, options.prefix));
  return std::make_unique<Bpe>(options, vocabulary, std::move(trie), std::move(merges));
}

}  // namespace attendant::text
