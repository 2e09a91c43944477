#include "tests/server/text/shown.h"

#include <map>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/model.h"
#include "server/text/normalizer.h"
#include "server/text/pre_tokenizer.h"
#include "server/text/tokenizer.h"

namespace attendant::text {
namespace {

// Characters before each byte of a text.
std::string Place(absl::string_view text, uint32_t begin, uint32_t end) {
  const auto characters = [&](uint32_t bytes) { return ToCodes(text.substr(0, bytes)).size(); };
  return absl::StrCat(characters(begin), ":", characters(end));
}

std::string ShowItems(ItemSpan items) { return absl::StrReplaceAll(ToUtf8(items), {{" ", "_"}}); }

Items ItemsOf(absl::string_view text) {
  Items items;
  AppendItems(text, items);
  return items;
}

void AppendShown(std::string& shown, absl::string_view added, absl::string_view separator = " ") {
  absl::StrAppend(&shown, shown.empty() ? "" : separator, added);
}

}  // namespace

std::string ShowNormalized(const std::string& json, absl::string_view text) {
  const auto tree = JsonTree::Parse(json, "normalizer");
  const auto normalizer = LoadNormalizer((*tree)->root(), "normalizer");
  if (!normalizer.ok()) return std::string(normalizer.status().message());
  Items items = ItemsOf(text);
  normalizer->apply(items);
  std::string shown;
  for (const Item& item : items) {
    AppendShown(shown, absl::StrCat(ShowItems({&item, 1}), Place(text, item.begin, item.end)));
  }
  return shown;
}

std::string ShowPieces(const std::string& json, absl::string_view text, bool places) {
  const auto tree = JsonTree::Parse(json, "pre_tokenizer");
  const auto pre_tokenizer = LoadPreTokenizer((*tree)->root(), "pre_tokenizer");
  if (!pre_tokenizer.ok()) return std::string(pre_tokenizer.status().message());
  Pieces pieces = {ItemsOf(text), {}};
  pieces.pieces = {{0, static_cast<uint32_t>(pieces.items.size())}};
  pre_tokenizer->apply(pieces);
  std::string shown;
  for (const Piece& piece : pieces.pieces) {
    const Item &first = pieces.items[piece.first], &last = pieces.items[piece.last - 1];
    const std::string own =
        ShowItems(ItemSpan(pieces.items).subspan(piece.first, piece.last - piece.first));
    AppendShown(shown, places ? absl::StrCat(own, Place(text, first.begin, last.end)) : own,
                places ? " " : "|");
  }
  return shown;
}

std::string ShowTokens(const std::string& json, absl::string_view piece) {
  const auto tree = JsonTree::Parse(json, "model");
  Vocabulary vocabulary;
  const auto model = LoadModel(Fields((*tree)->root(), "model"), {}, vocabulary);
  if (!model.ok()) return std::string(model.status().message());
  std::map<uint32_t, std::string> names;
  for (const auto& [token, id] : vocabulary) names[id] = token;
  std::vector<ModelToken> tokens;
  const Items items = ItemsOf(piece);
  ModelScratch scratch;
  (*model)->Tokenize(items, scratch, tokens);
  std::string shown;
  for (const ModelToken& token : tokens) {
    const std::string place = Place(piece, items[token.first].begin, items[token.last - 1].end);
    AppendShown(shown, absl::StrCat(names[token.id], place));
  }
  return shown;
}

std::string ShowEncoding(const std::string& tokenizer_json, absl::string_view text) {
  const auto tokenizer = Tokenizer::Load(tokenizer_json);
  if (!tokenizer.ok()) return std::string(tokenizer.status().message());
  const auto encoding = (*tokenizer)->Encode(text, {});
  if (!encoding.ok()) return std::string(encoding.status().message());
  std::string shown;
  for (size_t i = 0; i < encoding->ids.size(); ++i) {
    const TextRange place = encoding->code_points[i];
    AppendShown(shown, absl::StrCat(encoding->ids[i], " ", place.begin, ":", place.end));
  }
  return shown;
}

std::string WordTokenizer(absl::string_view words, absl::string_view added_tokens,
                          absl::string_view normalizer) {
  std::string vocabulary = R"("U":0)";
  int id = 0;
  for (const absl::string_view word : absl::StrSplit(words, ' ', absl::SkipEmpty())) {
    absl::StrAppend(&vocabulary, ",\"", word, "\":", ++id);
  }
  return absl::StrCat(
      R"({"version":"1.0","added_tokens":[)", added_tokens, R"(],"normalizer":)", normalizer,
      R"(,"pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,)",
      R"("model":{"type":"WordLevel","unk_token":"U","vocab":{)", vocabulary, "}}}");
}

std::string Added(uint32_t id, absl::string_view content, absl::string_view flags) {
  std::string json =
      absl::StrCat(R"({"id":)", id, R"(,"content":")", content, R"(","special":false)");
  for (const absl::string_view flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
    absl::StrAppend(&json, ",\"", flag, "\":", absl::StrContains(flags, flag) ? "true" : "false");
  }
  return json + "}";
}

std::string SmallCharsmap() {
  // Keys and what replaces them. A double array: the root and the first bytes are by themselves, as
  // no two of these keys share a byte before their last.
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"\x1E", ""}, {"\n", " "}, {"\r\n", " "}, {"\u2122", "TM"}, {"\uFF21", "A"}, {"\u0300", "^"}};
  std::vector<uint32_t> units(1024, 0);
  std::string strings;
  const auto set = [&](uint32_t node, uint32_t next, bool leaf, uint32_t label) {
    units[node] = (node ^ next) << 10 | (leaf ? 1u << 8 : 0) | label;
  };
  units[0] = 512u << 10;
  for (const auto& [key, value] : keys) {
    uint32_t base = 512;
    for (size_t i = 0; i < key.size(); ++i) {
      const uint32_t byte = static_cast<unsigned char>(key[i]);
      const uint32_t node = base ^ byte;
      const bool is_last = i + 1 == key.size();
      // The children of each further node are in a block of its own.
      if (!is_last) units.resize(units.size() + 256);
      const uint32_t next =
          static_cast<uint32_t>(is_last ? 5 + strings.size() : units.size() - 256);
      set(node, next, is_last, byte);
      if (is_last) units[next] = 1u << 31 | static_cast<uint32_t>(strings.size());
      base = next;
    }
    strings += value + std::string(1, '\0');
  }
  std::string bytes;
  const auto append = [&](uint32_t unit) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(unit >> shift));
  };
  append(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) append(unit);
  return absl::StrCat(R"({"type":"Precompiled","precompiled_charsmap":")",
                      absl::Base64Escape(bytes + strings), "\"}");
}

}  // namespace attendant::text
