// Patterns of word-like pieces: those of GPT-2 and its successors, which try alternatives in turn,
// scanned by hand in linear time.
#pragma once

#include "absl/strings/string_view.h"
#include "server/text/split_pattern.h"

namespace attendant::text {

// The pattern by which GPT-2 splits texts.
SplitPattern Gpt2Words();

// The pattern with a regular expression as tokenizer.json writes it; empty for any other. Ends of
// lines may stand in it as they are, or as \r and \n.
SplitPattern KnownWords(absl::string_view regex);

}  // namespace attendant::text
