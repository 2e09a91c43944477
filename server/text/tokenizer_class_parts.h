// The parts built by classes of transformers: normalizer, pre-tokenizer, model options and, for
// most, the post-processor.
#pragma once

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
absl::Status LikeT5(const TokenizerSettings&, const Fields& file, TokenizerOverrides& parts);
absl::Status LikeDeberta(const TokenizerSettings& settings, const Fields& file,
                         TokenizerOverrides& parts);
absl::Status LikeLlama(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeGemma(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeQwen(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);
absl::Status LikeClip(const TokenizerSettings& settings, const Fields&, TokenizerOverrides& parts);

// Adds the tokens that CamemBERT's class does not use to the special tokens, unless the settings
// list such tokens.
void AddNotUsed(const TokenizerSettings& settings, TokenizerOverrides& parts);

// Adds T5's sentinels <extra_id_0> and so on to the special tokens, unless the settings list such
// tokens.
void AddSentinels(const TokenizerSettings& settings, TokenizerOverrides& parts);

}  // namespace attendant::text
