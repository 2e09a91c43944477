// The parts built by classes of transformers: normalizer, pre-tokenizer, model options and, for
// most, the post-processor.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "server/text/base/json_fields.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {

// See TokenizerClass::parts.
absl::Status LikeBert(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
// Ignores do_lower_case, like the library.
absl::Status LikeDpr(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeMpnet(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeRoberta(const TokenizerSettings& settings, const Fields&,
                         TokenizerOverrides& parts);
absl::Status LikeGpt2(const TokenizerSettings& settings, const Fields& file,
                      TokenizerOverrides& parts);
absl::Status LikeXlmRoberta(const TokenizerSettings& settings, const Fields& file,
                            TokenizerOverrides& parts);
absl::Status LikeCamembert(const TokenizerSettings& settings, const Fields& file,
                           TokenizerOverrides& parts);
absl::Status LikeAlbert(const TokenizerSettings& settings, const Fields& file,
                        TokenizerOverrides& parts);
absl::Status LikeBigBird(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts);
absl::Status LikeRemBert(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts);
absl::Status LikePegasus(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts);
absl::Status LikeMbart(const TokenizerSettings& settings, const Fields& file,
                       TokenizerOverrides& parts);
absl::Status LikeMbart50(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts);
absl::Status LikeNllb(const TokenizerSettings& settings, const Fields& file,
                      TokenizerOverrides& parts);
absl::Status LikeT5(const TokenizerSettings&, const Fields& file, TokenizerOverrides& parts);
absl::Status LikeDeberta(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts);
absl::Status LikeLlama(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeGemma(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeQwen(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeClip(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);

// See TokenizerClass::change_tokens. CamemBERT's class has tokens that it does not use unless there
// is a list. T5's has sentinels <extra_id_0> and so on unless the list has some. Pegasus' has its
// own tokens instead of the list, and those of mBART the languages along with it.
void AddNotUsed(const TokenizerSettings&, std::optional<std::vector<AddedTokenSetting>>& tokens);
void AddSentinels(const TokenizerSettings& settings,
                  std::optional<std::vector<AddedTokenSetting>>& tokens);
void UsePegasusTokens(const TokenizerSettings& settings,
                      std::optional<std::vector<AddedTokenSetting>>& tokens);
void AddMbartLanguages(const TokenizerSettings&,
                       std::optional<std::vector<AddedTokenSetting>>& tokens);
void AddMbart50Languages(const TokenizerSettings&,
                         std::optional<std::vector<AddedTokenSetting>>& tokens);

// See TokenizerClass::pieces. XLM-RoBERTa has fairseq's four special tokens instead of the model's
// three, and a mask at the end; so have the classes of translation models, along with languages.
absl::Status FairseqPieces(const TokenizerSettings& settings, SentencePieceModel& model);
absl::Status CamembertPieces(const TokenizerSettings& settings, SentencePieceModel& model);
absl::Status MbartPieces(const TokenizerSettings& settings, SentencePieceModel& model);
absl::Status Mbart50Pieces(const TokenizerSettings& settings, SentencePieceModel& model);
absl::Status NllbPieces(const TokenizerSettings& settings, SentencePieceModel& model);
absl::Status PegasusPieces(const TokenizerSettings& settings, SentencePieceModel& model);
absl::Status T5Pieces(const TokenizerSettings& settings, SentencePieceModel& model);

}  // namespace attendant::text
