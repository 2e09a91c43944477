// The lengths of texts by their task, the token that makes queries longer, and the checkpoints of
// Stanford's ColBERT: an encoder's folder, with a linear layer in the same weight files and with
// settings in artifact.metadata.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/tokenization.h"
#include "engine/model/model_description.h"

namespace attendant {

inline constexpr char kStanfordMetadata[] = "artifact.metadata";

inline constexpr IntegerRange kTextLengthRange = {1, std::numeric_limits<int32_t>::max()};

// The settings of one file; another file may have those that are absent.
struct TextLengths {
  // Pads queries with a token that is scored.
  struct Expansion {
    int64_t length = 0;      // of all shorter queries, special tokens included
    bool cuts = true;        // longer queries, to the same length
    bool attends = false;    // whether tokens attend to the added ones
    std::string token = {};  // empty: the mask token, or else the token at the end of texts
  };

  std::optional<int64_t> query = {};
  std::optional<int64_t> document = {};
  // Outer nothing: the file does not say. Inner nothing: queries are not expanded.
  std::optional<std::optional<Expansion>> expansion = {};

  // Takes what this does not say from `other`.
  void FillFrom(const TextLengths& other);
};

// Reads query_length, document_length and query_expansion of a sentence_bert_config.json.
TextLengths ReadTextLengths(ConfigReader& config);

// Reads PyLate's config_sentence_transformers.json. Queries are expanded unless do_query_expansion
// is false.
TextLengths ReadPylateLengths(ConfigReader& config);

// Whether config.json names the architecture of Stanford's checkpoints.
bool IsStanfordColbert(const std::string& folder);

// Reads artifact.metadata as sentence-transformers does; absent values are the library's defaults.
// Scores other than sums of the largest cosines are problems.
TextLengths ReadStanfordLengths(ConfigReader& config);

// Sets the lengths of `read`, which has its tokenizer's files, and how it expands queries.
// `tokenizer_config` names the special tokens. INVALID_ARGUMENT, with the file `path` that asks for
// an expansion, if its token is not one of the tokenizer, or would come before the text.
absl::Status SetTextLengths(const TextLengths& lengths, const Json& tokenizer_config,
                            const std::string& path, Tokenization& read);

// Checks, once the model's heads are known, that it supports the lengths and the expansion that its
// files ask for. Without `scores_expansion` (a MultiVectorMask) tokens that nothing attends to make
// no difference, and are left out. INVALID_ARGUMENT names `folder`.
absl::Status SettleQueryExpansion(const std::string& folder, const ModelDescription& model,
                                  bool scores_expansion, Tokenization& tokenization);

}  // namespace attendant
