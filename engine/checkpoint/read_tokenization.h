// Reads the files that say how to turn text into token ids: Hugging Face's tokenizer files and the
// files of sentence-transformers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant {

// The largest tokenizer.json that is read. Multilingual models have 9 to 17 MiB.
inline constexpr int64_t kMaxTokenizerBytes = int64_t{64} << 20;

// Reads what there is of these files; none is required.
//   tokenizer.json               kept if it is an object with a model; the ids of special tokens,
//                                and the side of its truncation
//   tokenizer_config.json        model_max_length or max_len, truncation_side, and the names of
//                                special tokens;
//   special_tokens_map.json      the latter in older folders
//   config.json                  max_position_embeddings, which bounds model_max_length
//   artifact.metadata            of Stanford's ColBERT, prefixes and lengths
// With modules.json, as in sentence-transformers, also these; without it they are warnings:
//   sentence_bert_config.json    max_seq_length, which counts more than model_max_length,
//                                do_lower_case, and the lengths of queries and documents; also by
//                                the names that it has for other families
//   config_sentence_transformers.json  prompts and default_prompt_name; of PyLate also the prefixes
//                                     and the lengths
// The transformer's files are also kept as they are (Tokenization::files), with vocab.txt,
// vocab.json, merges.txt, added_tokens.json and the model's config.json, and without tokenizer.json
// the SentencePiece models; but prefixes of PyLate are special tokens in tokenizer.json. The last
// is in `folder`, the others are in `transformer`, which is the same folder for most models.
// INVALID_ARGUMENT for faults in the files of sentence-transformers, which change the vectors of
// texts. Faults in the others are added to `warnings`; such a file or truncation_side is then
// ignored.
absl::StatusOr<Tokenization> ReadTokenization(const std::string& folder,
                                              const std::string& transformer,
                                              std::vector<std::string>& warnings);

// Returns the folder's chat template; empty: it has none.
std::string ReadChatTemplate(const std::string& folder);

}  // namespace attendant
