// TextTask and TextResult: the request and result of any text API, independent of its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant::server {

// A text, a pair of texts that the model reads together, or a text's token ids.
struct TextInput {
  std::string text;
  std::optional<std::string> pair = {};
  std::optional<std::vector<int32_t>> ids = {};  // replaces `text`
};

enum class TextWish {
  kVectors,       // one per input
  kTokenVectors,  // one per token: for late interaction if the model has such vectors, otherwise
                  // the last layer's output
  kSparse,        // one sparse vector over the vocabulary per input
  kScores,        // class scores per input, from the classification head
  kEntities,      // token labels, from the token head
  kTokens,        // only the tokens
};

struct TextTask {
  std::string model;  // empty: the only suitable model
  TextWish wish = TextWish::kVectors;
  std::vector<TextInput> inputs;  // at least one
  // First text of a pair that the model reads with each input's text as the second. Set to rank
  // documents with a model of one class.
  std::optional<std::string> query = {};
  // The query is read by itself and documents are scored by late interaction. Set once the model is
  // known.
  bool interacts = false;
  std::string field;             // the request's name for its inputs, for messages
  std::string prompt_name = {};  // must exist in the model unless empty
  // Without `prompt_name`, the first of these that the model has precedes the texts;
  // if it has none, its default prompt.
  std::vector<std::string> preferred_prompts = {};
  // Not set: texts are truncated on the side of the model's tokenizer, ids on the right.
  std::optional<v1::Truncation> truncation = {};
  bool normalize = false;                  // scale vectors to length 1, after truncating them
  std::optional<int64_t> dimensions = {};  // truncate each vector to these
  // For kScores. Not set: as the model was trained for classes or, with a query, for ranking.
  std::optional<ScoreFunction> scores = {};
  bool add_special_tokens = true;  // for kTokens
  bool checks_ids = false;         // refuse ids without the tokenizer's special tokens
};

struct SparseEntry {
  int32_t word;
  float weight;
};

struct TextResult {
  std::string model;  // as the client named it
  // Tokens of each input after truncation, including special tokens; for kTokenVectors, tokens with
  // a vector.
  std::vector<int64_t> tokens;
  int64_t query_tokens = 0;  // of a query that is read by itself
  // kVectors: [inputs, width]. kScores: [inputs, classes], after the score function. kTokenVectors:
  // [sum of tokens, width]. kEntities: [sum of tokens, labels], probabilities.
  int64_t width = 0;
  std::vector<float> numbers;
  std::vector<std::vector<SparseEntry>> sparse;  // kSparse: per input, by ascending word
  std::vector<v1::TextTokens> texts;             // kEntities, kTokens: per input
  std::vector<std::string> labels;               // kScores, kEntities: of the columns
  std::optional<uint32_t> unknown_id = {};       // kEntities: of the token for unknown words
  absl::Duration elapsed = {};                   // since the head of the request

  int64_t total_tokens() const {
    int64_t total = query_tokens;
    for (const int64_t count : tokens) total += count;
    return total;
  }
};

}  // namespace attendant::server
