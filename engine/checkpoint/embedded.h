// Models that need no files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// The 4 -> 3 self-attention of "Illustrated: Self-Attention": one head, no bias, scores not scaled.
Checkpoint OpenWorkedExample();

// `name_and_seed` is "<name>[@seed]", with a name of SyntheticModelNames() and a decimal seed (0 if
// not given). The weights depend on the seed and each tensor's name alone, and are the same on
// every machine: approximately normal with a standard deviation of 0.02, norm weights around 1.
// NOT_FOUND: no such name. INVALID_ARGUMENT: not a seed.
absl::StatusOr<Checkpoint> OpenSynthetic(absl::string_view name_and_seed);

}  // namespace attendant
