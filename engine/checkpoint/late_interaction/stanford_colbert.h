// ColBERT checkpoints of Stanford's library: an encoder's folder, with a linear layer in the same
// weight files and with settings in artifact.metadata.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/late_interaction/text_lengths.h"

namespace attendant {

inline constexpr char kStanfordMetadata[] = "artifact.metadata";

// Whether config.json names the architecture of these checkpoints.
bool IsStanfordColbert(const std::string& folder);

struct StanfordSettings {
  // Go before texts as prompts; their first words are tokens.
  std::string query_prefix, document_prefix;
  TextLengths lengths;
};

// Reads artifact.metadata as sentence-transformers does; the library's defaults if it is absent.
// INVALID_ARGUMENT: scores other than sums of the largest cosines.
absl::StatusOr<StanfordSettings> ReadStanfordColbert(const std::string& folder);

}  // namespace attendant
