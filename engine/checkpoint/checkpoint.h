// OpenCheckpoint: opens a model from the directory of a published checkpoint, from a torch state
// dict with its description, or from the models built in.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {

// Opens a model. `source` is one of
//   "worked-example"           the 4 -> 3 attention of the article of tests/articles/README.md
//                              (unscaled scores)
//   "synthetic:<name>[@seed]"  real shapes, seeded weights; see SyntheticModelNames()
//   a directory                config.json with model.safetensors or model.safetensors.index.json,
//                              and the files of sentence-transformers if present; or attendant.json
//                              with the safetensors of a torch module (see torch/torch_modules.h)
// Checks everything that can be checked without reading tensor data. One message lists all problems
// of a file, with the file, the tensor, the expected and the actual value. The rest is checked as
// weights are read. NOT_FOUND: there is no such source. INVALID_ARGUMENT: the files are refused.
//
// `options.weights_sha256` is the digest of the weight file. For several files it is the SHA-256 of
// their digests in hexadecimal, concatenated in the order of the file paths:
//   sha256sum model-*.safetensors | cut -c 1-64 | tr -d '\n' | sha256sum
// The files are read for this only if it is given.
absl::StatusOr<Checkpoint> OpenCheckpoint(const std::string& source,
                                          const CheckpointOptions& options);

// Opens a model like OpenCheckpoint, but `found` has everything that was read even if the status is
// an error. The description is unknown as long as it has no layers; `found.weights` is set if the
// status is OK.
absl::Status InspectCheckpoint(const std::string& source, const CheckpointOptions& options,
                               Checkpoint& found);

// Reads every weight of the model, drops it, and returns the problems that only values show, one
// for each tensor: NaN, infinities, norms that are all zero, files that have changed. Takes as much
// memory as the largest tensor.
std::vector<std::string> ListValueProblems(const ModelDescription& description,
                                           WeightSource& weights);

// Returns the names that may follow "synthetic:", for help and error messages.
std::vector<std::string> SyntheticModelNames();

}  // namespace attendant
