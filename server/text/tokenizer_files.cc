#include "server/text/tokenizer_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/tokenizer_class_parts.h"
#include "server/text/tokenizer_classes.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {
namespace {

size_t MaxLength(const TokenizerSettings& settings) {
  if (const size_t own = settings.sentence.Length("max_seq_length"); own > 0) return own;
  size_t length = settings.tokenizer.Length("model_max_length");
  if (length == 0) length = settings.tokenizer.Length("max_len");
  const size_t positions = settings.model.Length("max_position_embeddings");
  return length == 0 || positions == 0 ? std::max(length, positions) : std::min(length, positions);
}

absl::StatusOr<TokenizerSettings> ReadSettings(const TokenizerFiles& files) {
  auto tokenizer = Settings::Read(files.tokenizer_config_json, "tokenizer_config.json");
  if (!tokenizer.ok()) return tokenizer.status();
  auto special = Settings::Read(files.special_tokens_map_json, "special_tokens_map.json");
  if (!special.ok()) return special.status();
  auto model = Settings::Read(files.config_json, "config.json");
  if (!model.ok()) return model.status();
  auto sentence = Settings::Read(files.sentence_bert_config_json, "sentence_bert_config.json");
  if (!sentence.ok()) return sentence.status();
  return TokenizerSettings{*std::move(tokenizer), *std::move(special), *std::move(model),
                           *std::move(sentence)};
}

// Sets the tokens that transformers adds to those of a vocabulary.
absl::Status SetAddedTokens(const TokenizerSettings& settings, const TokenizerClass* known,
                            TokenizerOverrides& overrides) {
  absl::StatusOr<std::optional<std::vector<AddedTokenSetting>>> listed = settings.AddedTokens();
  if (!listed.ok()) return listed.status();
  if (listed->has_value()) overrides.added_tokens = **std::move(listed);
  // Such a class builds a tokenizer of the vocabulary alone.
  overrides.drops_file_tokens = known != nullptr && listed->has_value();
  for (const absl::string_view key : {"bos_token", "eos_token", "unk_token", "sep_token",
                                      "pad_token", "cls_token", "mask_token"}) {
    const auto token = SpecialTokenOf(settings, known, key);
    if (token.has_value()) overrides.special_tokens.push_back(*token);
  }
  for (AddedTokenSetting& token : settings.MoreSpecialTokens()) {
    overrides.special_tokens.push_back(std::move(token));
  }
  if (known != nullptr) overrides.resets_special_flags = known->resets_special_flags;
  if (known != nullptr && known->more_tokens != nullptr) known->more_tokens(settings, overrides);
  return absl::OkStatus();
}

absl::Status LoadFile(const std::string& json, const TokenizerSettings& settings,
                      EffectiveTokenizer& effective) {
  absl::StatusOr<Settings> file = Settings::Read(json, "tokenizer.json");
  if (!file.ok()) return file.status();
  TokenizerOverrides overrides;
  const TokenizerClass* known = FindTokenizerClass(settings, json);
  const std::optional<JsonValue> model = file->Find("model");
  const std::optional<JsonValue> type = model.has_value() ? model->Find("type") : std::nullopt;
  if (known != nullptr && (!type.has_value() || type->text() != known->model)) known = nullptr;
  overrides.reason =
      absl::StrCat("transformers' ", known == nullptr ? "TokenizersBackend" : known->name);
  if (known != nullptr) {
    const absl::Status status = known->parts(settings, file->fields(), overrides);
    if (!status.ok()) return status;
  }
  if (absl::Status status = SetAddedTokens(settings, known, overrides); !status.ok()) return status;
  absl::StatusOr<bool> lowercase = settings.sentence.fields().Bool("do_lower_case", false);
  if (!lowercase.ok()) return lowercase.status();
  overrides.lowercase = *lowercase;
  auto tokenizer = Tokenizer::Load(json, overrides, &effective.notes);
  if (!tokenizer.ok()) return tokenizer.status();
  effective.tokenizer = *std::move(tokenizer);
  return absl::OkStatus();
}

absl::Status LoadLines(const std::string& lines, const TokenizerSettings& settings,
                       EffectiveTokenizer& effective) {
  absl::StatusOr<BertSettings> bert = ReadBertSettings(settings);
  if (!bert.ok()) return bert.status();
  auto tokenizer = Tokenizer::LoadVocabulary(lines, *bert);
  if (!tokenizer.ok()) return tokenizer.status();
  effective.tokenizer = *std::move(tokenizer);
  effective.notes.push_back("vocab.txt without tokenizer.json is used as BERT's");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EffectiveTokenizer> LoadTokenizerFiles(const TokenizerFiles& files) {
  absl::StatusOr<TokenizerSettings> settings = ReadSettings(files);
  if (!settings.ok()) return settings.status();
  EffectiveTokenizer effective;
  absl::Status status =
      absl::NotFoundError("tokenizer.json: not found; add it, or vocab.txt, to the checkpoint");
  if (files.tokenizer_json.has_value()) {
    status = LoadFile(*files.tokenizer_json, *settings, effective);
  } else if (files.vocab_txt.has_value()) {
    status = LoadLines(*files.vocab_txt, *settings, effective);
  }
  if (!status.ok()) return status;
  effective.max_length = MaxLength(*settings);
  effective.truncation_side = effective.tokenizer->truncation_side();
  if (const auto side = settings->tokenizer.Text("truncation_side")) {
    effective.truncation_side = *side == "left" ? TruncationSide::kLeft : TruncationSide::kRight;
  }
  return effective;
}

}  // namespace attendant::text
