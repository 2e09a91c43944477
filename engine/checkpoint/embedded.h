// Embedded models, which need no files.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Opens the 4 -> 3 self-attention of the article "Illustrated: Self-Attention", which has one head,
// no bias and unscaled scores.
Checkpoint OpenWorkedExample();

// Opens the synthetic model `name_and_seed`, which is "<name>[@seed]" with a name of
// SyntheticModelNames() and a decimal seed, 0 by default. Each weight depends only on the seed and
// on its tensor's name, and is the same on every machine: approximately normal with a standard
// deviation of 0.02, with norm weights around 1. Returns NOT_FOUND for an unknown name and
// INVALID_ARGUMENT for a malformed seed.
absl::StatusOr<Checkpoint> OpenSynthetic(absl::string_view name_and_seed);

}  // namespace attendant
