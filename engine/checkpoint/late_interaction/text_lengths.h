// TextLengths: how long the texts of a task may be, and how queries are made longer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/checkpoint/families/config_reader.h"

namespace attendant {

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

// The range of a length in tokens.
IntegerRange TextLengthRange();

}  // namespace attendant
