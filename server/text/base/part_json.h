// Parts of tokenizer.json as JSON, for the classes of transformers that build them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"

namespace attendant::text {

std::string BoolJson(bool value);

// The id of a token, for TokenizerOverrides::post_processor.
std::string IdOf(absl::string_view token);

// Returns a template like "$A SEP $B", in which words other than $A and $B are special tokens.
// Those that end in ":1" are of the second text.
std::string TemplateJson(const std::vector<std::string>& single,
                         const std::vector<std::string>& pair);

std::string RobertaJson(const std::string& cls, const std::string& sep, bool trims, bool prefix);

// The options of a BPE model; `unk` is JSON.
std::string BpeOptions(absl::string_view unk, bool fuse_unk, bool byte_fallback,
                       absl::string_view suffix = "");

std::string UnigramOptions(int64_t unk_id);

std::string ByteLevelJson(bool prefix, bool use_regex);

std::string MetaspaceJson(absl::string_view scheme, bool split = true);

// Returns the map of characters in a file's normalizer, alone or in a sequence; or null.
std::string CharsmapJson(const Fields& file);

// Replaces a pattern of a kind, "String" or "Regex".
std::string ReplaceJson(absl::string_view kind, absl::string_view pattern,
                        absl::string_view content);

// A sequence of normalizers; null ones are left out.
std::string SequenceJson(const std::vector<std::string>& steps);

}  // namespace attendant::text
