// Tokens that classes of transformers add to the vocabulary of their files.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/text/tokenizer_class_parts.h"

namespace attendant::text {
namespace {

constexpr size_t kMbartCount = 25;  // MBart-50 has all
constexpr absl::string_view kLanguages[] = {
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN",
    "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP",
    "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN", "af_ZA", "az_AZ",
    "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN",
    "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE", "ta_IN", "te_IN",
    "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};

constexpr float kNeverChosen = -100;  // the score of tokens that no text should become

uint32_t CountAt(const TokenizerSettings& settings, absl::string_view key, uint32_t otherwise) {
  const std::optional<JsonValue> wanted = settings.tokenizer.Find(key);
  return std::min(wanted ? wanted->AsId().value_or(0) : otherwise, 10'000u);
}

std::string Sentinel(uint32_t number) { return absl::StrCat("<extra_id_", number, ">"); }
std::string Unknown(uint32_t number) { return absl::StrCat("<unk_", number, ">"); }

// Returns Pegasus' mask of sentences; nullopt if the settings say null.
std::optional<std::string> SentenceMask(const TokenizerSettings& settings,
                                        const std::string& otherwise) {
  constexpr char kKey[] = "mask_token_sent";
  if (!settings.tokenizer.fields().json().Find(kKey).has_value()) return otherwise;
  return settings.tokenizer.Text(kKey);
}

// Replaces the first `count` pieces, and appends `last`.
void Surround(std::vector<SentencePiece> first, size_t count, std::vector<SentencePiece> last,
              SentencePieceModel& model) {
  std::vector<SentencePiece>& pieces = model.pieces;
  first.insert(first.end(), pieces.begin() + static_cast<ptrdiff_t>(std::min(count, pieces.size())),
               pieces.end());
  first.insert(first.end(), last.begin(), last.end());
  pieces = std::move(first);
}

// Fairseq's special tokens, and `languages` before the mask.
void SurroundLikeFairseq(const TokenizerSettings& settings, absl::string_view first_key,
                         size_t languages, SentencePieceModel& model) {
  std::vector<SentencePiece> last;
  for (size_t i = 0; i < languages; ++i) last.push_back({std::string(kLanguages[i])});
  last.push_back({settings.Token("mask_token", "<mask>")});
  Surround({{settings.Token(first_key, "<s>")},
            {settings.Token("pad_token", "<pad>")},
            {settings.Token("eos_token", "</s>")},
            {settings.Token("unk_token", "<unk>")}},
           3, std::move(last), model);
}

using Tokens = std::optional<std::vector<AddedTokenSetting>>;

bool Has(const Tokens& tokens, absl::string_view text) {
  return tokens.has_value() && std::any_of(tokens->begin(), tokens->end(), [&](const auto& token) {
           return token.content == text;
         });
}

void Append(const std::string& token, Tokens& tokens) {
  if (!tokens.has_value()) tokens.emplace();
  tokens->push_back({token, {}});
}

bool IsSentinel(const std::string& token) { return absl::StrContains(token, "<extra_id_"); }

// Returns how many of the tokens of a SentencePiece model are T5's sentinels.
size_t CountSentinels(const SentencePieceModel& model) {
  return static_cast<size_t>(std::count_if(model.added.begin(), model.added.end(), IsSentinel));
}

}  // namespace

void AddNotUsed(const TokenizerSettings&, Tokens& tokens) {
  if (tokens.has_value()) return;
  for (const char* token : {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}) Append(token, tokens);
}

void AddSentinels(const TokenizerSettings& settings, Tokens& tokens) {
  const bool has_some = tokens.has_value() &&
                        std::any_of(tokens->begin(), tokens->end(),
                                    [](const auto& token) { return IsSentinel(token.content); });
  const uint32_t count = CountAt(settings, "extra_ids", 100);
  for (uint32_t i = 0; i < count && !has_some; ++i) Append(Sentinel(i), tokens);
}

void UsePegasusTokens(const TokenizerSettings& settings, Tokens& tokens) {
  const std::optional<std::string> mask = SentenceMask(settings, "<mask_1>");
  // Those of a SentencePiece model are objects, which the class does not take for its mask.
  const bool is_listed =
      mask.has_value() && !settings.sentence_piece.has_value() && Has(tokens, *mask);
  tokens.emplace();
  if (mask.has_value() && !is_listed) Append(*mask, tokens);
  const uint32_t offset = CountAt(settings, "offset", 103);
  for (uint32_t i = 2; i < offset; ++i) Append(Unknown(i), tokens);
}

void AddMbartLanguages(const TokenizerSettings&, Tokens& tokens) {
  Tokens all;
  for (size_t i = 0; i < kMbartCount; ++i) Append(std::string(kLanguages[i]), all);
  for (AddedTokenSetting& token : tokens.value_or(std::vector<AddedTokenSetting>())) {
    if (!Has(all, token.content)) all->push_back(std::move(token));
  }
  tokens = std::move(all);
}

void AddMbart50Languages(const TokenizerSettings&, Tokens& tokens) {
  for (const absl::string_view language : kLanguages) Append(std::string(language), tokens);
}

absl::Status FairseqPieces(const TokenizerSettings& settings, SentencePieceModel& model) {
  SurroundLikeFairseq(settings, "bos_token", 0, model);
  return absl::OkStatus();
}

absl::Status CamembertPieces(const TokenizerSettings& settings, SentencePieceModel& model) {
  if (!model.is_unigram) {
    return Unsupported(model.file, "a model of another type than Unigram is", "Unigram");
  }
  Surround({{"<s>NOTUSED"},
            {settings.Token("pad_token", "<pad>")},
            {"</s>NOTUSED"},
            {settings.Token("unk_token", "<unk>")},
            {"<unk>NOTUSED", kNeverChosen}},
           1, {{settings.Token("mask_token", "<mask>")}}, model);
  return absl::OkStatus();
}

absl::Status MbartPieces(const TokenizerSettings& settings, SentencePieceModel& model) {
  SurroundLikeFairseq(settings, "bos_token", kMbartCount, model);
  return absl::OkStatus();
}

absl::Status Mbart50Pieces(const TokenizerSettings& settings, SentencePieceModel& model) {
  SurroundLikeFairseq(settings, "cls_token", std::size(kLanguages), model);
  return absl::OkStatus();
}

absl::Status NllbPieces(const TokenizerSettings& settings, SentencePieceModel& model) {
  std::vector<SentencePiece> pieces = {{settings.Token("bos_token", "<s>")},
                                       {settings.Token("pad_token", "<pad>")},
                                       {settings.Token("eos_token", "</s>")},
                                       {settings.Token("unk_token", "<unk>")}};
  absl::flat_hash_set<std::string> known;
  for (const SentencePiece& piece : pieces) known.insert(piece.text);
  for (SentencePiece& piece : model.pieces) {
    if (known.insert(piece.text).second) pieces.push_back(std::move(piece));
  }
  model.pieces = std::move(pieces);
  return absl::OkStatus();
}

absl::Status PegasusPieces(const TokenizerSettings& settings, SentencePieceModel& model) {
  const auto mask = settings.SpecialToken("mask_token", "<mask_1>");
  const std::optional<std::string> sentence_mask = SentenceMask(settings, "<mask_2>");
  std::vector<SentencePiece> first = {{settings.Token("pad_token", "<pad>")},
                                      {settings.Token("eos_token", "</s>")}};
  if (mask.has_value()) first.push_back({mask->content});
  if (sentence_mask.has_value() && (!mask.has_value() || *sentence_mask != mask->content)) {
    first.push_back({*sentence_mask});
  }
  const uint32_t offset = CountAt(settings, "offset", 103);
  for (uint32_t i = 2; i < offset; ++i) first.push_back({Unknown(i), kNeverChosen});
  Surround(std::move(first), 2, {}, model);
  return absl::OkStatus();
}

absl::Status T5Pieces(const TokenizerSettings& settings, SentencePieceModel& model) {
  const uint32_t count = CountAt(settings, "extra_ids", 100);
  const size_t sentinels = CountSentinels(model);
  if (sentinels > 0 && count > 0 && sentinels != count) {
    return Unexpected("tokenizer_config.json.extra_ids",
                      absl::StrCat("0 or ", sentinels, ", as in ", model.file),
                      absl::StrCat(count));
  }
  std::vector<SentencePiece> last;
  for (uint32_t i = count; i > 0; --i) last.push_back({Sentinel(i - 1)});
  Surround({}, 0, std::move(last), model);
  return absl::OkStatus();
}

}  // namespace attendant::text
