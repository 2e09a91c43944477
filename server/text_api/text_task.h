// TextTask and TextResult: a request of any of the text APIs and its result, the same for all of
// them in whatever JSON they write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attendant/v1/encoder_service.pb.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant::server {

// A text, a pair of texts that the model reads together, or the ids of a text's tokens.
struct TextInput {
  std::string text;
  std::optional<std::string> pair = {};
  std::optional<std::vector<int32_t>> ids = {};  // instead of `text`
};

enum class TextWish {
  kVectors,       // one for each input
  kTokenVectors,  // of each token of each input: its vector for late interaction, or, if the model
                  // makes none, the last layer's output
  kSparse,        // one sparse vector over the vocabulary for each input
  kScores,        // of the classes of each input, by the checkpoint's classification head
  kEntities,      // labels of tokens, by its token head
  kTokens,        // the tokens alone
};

// The function that makes scores of the outputs of a classification head.
enum class ScoresFor { kClasses, kRanking, kRaw };

struct TextTask {
  std::string model;  // empty: the only one that can do it
  TextWish wish = TextWish::kVectors;
  std::vector<TextInput> inputs;  // at least one
  // Read by the model before each input, as the first text of a pair whose second one is the
  // input's text. Set for documents that are ranked, which only a model with one class does.
  std::optional<std::string> query = {};
  // The query is read alone, and documents are scored by late interaction, as the model does it.
  // Set once the model is known.
  bool interacts = false;
  std::string field;  // what the request calls its inputs, for messages
  std::optional<std::string> prompt = {};
  std::string prompt_name = {};  // which the model has to have, unless it is empty
  // The first one that the model has goes before the texts, unless `prompt` or `prompt_name` says
  // otherwise; if it has none of them, its default does.
  std::vector<std::string> preferred_prompts = {};
  v1::Truncation truncation = v1::TRUNCATE_RIGHT;
  bool normalize = false;                  // vectors to length 1
  std::optional<int64_t> dimensions = {};  // the first ones of each vector, which is scaled again
  ScoresFor scores = ScoresFor::kClasses;  // of kScores
  bool add_special_tokens = true;          // of kTokens
};

struct SparseEntry {
  int32_t word;
  float weight;
};

struct TextResult {
  std::string model;  // its name, as the caller knows it
  // That each input has, special ones included, after truncation; kTokenVectors: those with a
  // vector.
  std::vector<int64_t> tokens;
  int64_t query_tokens = 0;  // of a query that was read alone
  // kVectors: [inputs, width]. kScores: [inputs, classes], with the function applied.
  // kTokenVectors: [sum of tokens, width]. kEntities: [sum of tokens, labels], probabilities.
  int64_t width = 0;
  std::vector<float> numbers;
  std::vector<std::vector<SparseEntry>> sparse;  // kSparse: of each input, by ascending words
  std::vector<v1::TextTokens> texts;             // kEntities, kTokens: of each input
  std::vector<std::string> labels;               // kScores, kEntities: of the columns

  int64_t total_tokens() const {
    int64_t total = query_tokens;
    for (const int64_t count : tokens) total += count;
    return total;
  }
};

}  // namespace attendant::server
