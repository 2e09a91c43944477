// Patterns of word-like pieces in GPT-2 and its successors, which try alternatives in turn, scanned
// by hand in linear time.
#pragma once

#include "absl/strings/string_view.h"
#include "server/text/split_pattern.h"

namespace attendant::text {

// The pattern with which GPT-2 splits texts.
SplitPattern Gpt2Words();

// Returns the pattern of a regular expression in tokenizer.json, in which line breaks may be
// literal or escaped (\r and \n); empty if it is unknown.
SplitPattern KnownWords(absl::string_view regex);

}  // namespace attendant::text
