#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/base/unicode.h"
#include "server/text/tokenizer_parts.h"

namespace attendant::text {
namespace {

// A part of tokenizer.json, or the text that replaces it.
class PartJson {
 public:
  static absl::StatusOr<PartJson> Read(const Fields& file, absl::string_view key,
                                       const std::optional<std::string>& instead) {
    PartJson part;
    absl::StatusOr<std::unique_ptr<JsonTree>> tree =
        JsonTree::Parse(instead.has_value() ? absl::string_view(*instead) : "null", key);
    if (!tree.ok()) return tree.status();
    part.tree_ = *std::move(tree);
    if (!instead.has_value()) part.value_ = file.Find(key);
    return part;
  }

  JsonValue value() const { return value_.value_or(tree_->root()); }

 private:
  std::unique_ptr<JsonTree> tree_;
  std::optional<JsonValue> value_;
};

absl::Status CheckVersion(const Fields& file) {
  absl::StatusOr<std::string> version = file.String("version", "1.0");
  if (!version.ok()) return version.status();
  if (*version != "1.0") return Unsupported("version", *version, "1.0");
  return file.RequireKnown(
      "version,truncation,padding,added_tokens,normalizer,pre_tokenizer,post_processor,decoder,"
      "model");
}

TruncationSide ReadSide(const Fields& file) {
  const std::optional<JsonValue> truncation = file.Find("truncation");
  const std::optional<JsonValue> side =
      truncation.has_value() ? truncation->Find("direction") : std::nullopt;
  return side.has_value() && side->text() == "Left" ? TruncationSide::kLeft
                                                    : TruncationSide::kRight;
}

absl::flat_hash_map<uint32_t, Padding> FindPadding(const Vocabulary& vocabulary) {
  absl::flat_hash_map<uint32_t, Padding> all;
  Items items;
  for (const auto& [token, id] : vocabulary) {
    items.clear();
    AppendItems(token, items);
    const Padding padding = PaddingOf(items);
    if (padding.leading > 0 || padding.trailing > 0) all[id] = padding;
  }
  return all;
}

constexpr absl::string_view kBertPreTokenizer = R"({"type": "BertPreTokenizer"})";

}  // namespace

absl::Status Tokenizer::Assemble(const TokenizerOverrides& overrides, const Fields& file,
                                 Vocabulary vocabulary, Parts& parts) {
  absl::StatusOr<PartJson> normalizer = PartJson::Read(file, "normalizer", overrides.normalizer);
  if (!normalizer.ok()) return normalizer.status();
  absl::StatusOr<PartJson> pre = PartJson::Read(file, "pre_tokenizer", overrides.pre_tokenizer);
  if (!pre.ok()) return pre.status();
  absl::StatusOr<PartJson> post = PartJson::Read(file, "post_processor", overrides.post_processor);
  if (!post.ok()) return post.status();
  absl::StatusOr<PartJson> added = PartJson::Read(file, "added_tokens", std::nullopt);
  if (!added.ok()) return added.status();

  auto read_normalizer = LoadNormalizer(normalizer->value(), "normalizer");
  if (!read_normalizer.ok()) return read_normalizer.status();
  parts.normalizer = *std::move(read_normalizer);
  if (overrides.lowercase) parts.normalizer = LowercaseBefore(std::move(parts.normalizer));
  auto read_pre = LoadPreTokenizer(pre->value(), "pre_tokenizer");
  if (!read_pre.ok()) return read_pre.status();
  parts.pre_tokenizer = *std::move(read_pre);
  auto read_post = LoadPostProcessor(post->value(), "post_processor");
  if (!read_post.ok()) return read_post.status();
  parts.post_processor = *std::move(read_post);
  auto tokens = LoadAddedTokens(added->value(), *parts.model);
  if (!tokens.ok()) return tokens.status();

  for (const auto& [token, id] : vocabulary) parts.id_limit = std::max(parts.id_limit, id + 1);
  for (const AddedToken& token : *tokens) {
    parts.added_ids[token.content] = token.id;
    parts.id_limit = std::max(parts.id_limit, token.id + 1);
  }
  for (const bool is_pair : {false, true}) {
    for (const TemplatePart& part : parts.post_processor.parts(is_pair)) {
      for (const uint32_t id : part.ids) parts.id_limit = std::max(parts.id_limit, id + 1);
    }
  }
  parts.added = AddedTokens(*std::move(tokens), *parts.normalizer);
  if (!parts.post_processor.trims.empty()) parts.padding = FindPadding(vocabulary);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(absl::string_view tokenizer_json,
                                                           const TokenizerOverrides& overrides) {
  absl::StatusOr<std::unique_ptr<JsonTree>> tree =
      JsonTree::Parse(tokenizer_json, "tokenizer.json");
  if (!tree.ok()) return tree.status();
  if (!(*tree)->root().is_object()) {
    return Unexpected("tokenizer.json", "an object", (*tree)->root());
  }
  const Fields file((*tree)->root(), "");
  if (absl::Status status = CheckVersion(file); !status.ok()) return status;
  absl::StatusOr<JsonValue> json = file.Get("model");
  if (!json.ok()) return json.status();
  absl::StatusOr<Fields> fields = Fields::Open(*json, "model");
  if (!fields.ok()) return fields.status();
  auto parts = std::make_unique<Parts>();
  Vocabulary vocabulary;
  absl::StatusOr<std::unique_ptr<Model>> model = LoadModel(*fields, vocabulary);
  if (!model.ok()) return model.status();
  parts->model = *std::move(model);
  parts->truncation_side = ReadSide(file);
  absl::Status status = Assemble(overrides, file, std::move(vocabulary), *parts);
  if (!status.ok()) return status;
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::LoadVocabulary(absl::string_view vocab_txt,
                                                                     const BertSettings& settings) {
  Vocabulary vocabulary;
  absl::flat_hash_map<std::string, uint32_t> ids;
  const size_t valid = ValidPrefix(vocab_txt);
  if (valid != vocab_txt.size()) {
    return Unexpected("vocab.txt", "UTF-8", absl::StrCat("something else at byte ", valid));
  }
  while (absl::ConsumeSuffix(&vocab_txt, "\n")) {
  }
  for (absl::string_view line : absl::StrSplit(vocab_txt, '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    if (line.size() > kMaxTokenBytes) {
      return Unexpected("vocab.txt", absl::StrCat("lines of at most ", kMaxTokenBytes, " bytes"),
                        absl::StrCat(line.size()));
    }
    const uint32_t id = static_cast<uint32_t>(vocabulary.size());
    vocabulary.emplace_back(line, id);
    ids[std::string(line)] = id;
  }
  auto parts = std::make_unique<Parts>();
  absl::StatusOr<std::unique_ptr<Model>> model = MakeWordPiece({}, vocabulary);
  if (!model.ok()) return model.status();
  parts->model = *std::move(model);
  for (const absl::string_view token : {"[CLS]", "[SEP]"}) {
    if (!ids.contains(token)) return Unexpected("vocab.txt", token, "no such line");
  }
  std::string added = "[";
  for (const absl::string_view token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (!ids.contains(token)) continue;
    absl::StrAppend(&added, added.size() > 1 ? "," : "", R"({"id":)", ids[token], R"(,"content":")",
                    token, R"(","single_word":false,"lstrip":false,"rstrip":false,)",
                    R"("normalized":false,"special":true})");
  }
  const auto text = [](bool value) { return value ? "true" : "false"; };
  const std::string json = absl::StrCat(
      R"({"added_tokens":)", added, R"(],"pre_tokenizer":)", kBertPreTokenizer,
      R"(,"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":)",
      text(settings.tokenize_chinese_chars), R"(,"lowercase":)", text(settings.lowercase),
      R"(,"strip_accents":)", text(settings.strip_accents.value_or(settings.lowercase)),
      R"(},"post_processor":{"type":"BertProcessing","cls":["[CLS]",)", ids["[CLS]"],
      R"(],"sep":["[SEP]",)", ids["[SEP]"], "]}}");
  absl::StatusOr<std::unique_ptr<JsonTree>> tree = JsonTree::Parse(json, "vocab.txt");
  if (!tree.ok()) return tree.status();
  absl::Status status = Assemble({}, Fields((*tree)->root(), ""), std::move(vocabulary), *parts);
  if (!status.ok()) return status;
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

}  // namespace attendant::text
