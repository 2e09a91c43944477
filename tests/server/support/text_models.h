// Models of tests that take texts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/models/served_model.h"
#include "tests/server/support/test_server.h"

namespace attendant::server {

// A tokenizer of WordPiece with the words of kTextWords, in their order.
inline constexpr const char* kTextWords[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "world",
                                             "good",  "##bye", "query", ":",     "caf",   "##e"};
std::shared_ptr<const ModelTokenizer> TextTokenizer();

// The model with that tokenizer. Sequences are meant to have at most 8 tokens; prompts are "query"
// ("query: ") and "none" (""), and none is the default.
std::shared_ptr<ServedModel> WithTexts(const ServedModel& model);

// Replaces a model by one whose tokenizer truncates texts on the left, to `length` tokens unless it
// is 0.
void TruncateOnTheLeft(ServedModels& models, const std::string& name, int64_t length = 0);

// TestModels(), of which "tiny" and "counting" take texts.
ServedModels TextModels();

}  // namespace attendant::server
