// Opens a model: a folder of a published checkpoint, a torch state dict with its description, or an
// embedded one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {

// `source` is one of
//   "worked-example"           the article's 4 -> 3 attention with unscaled scores
//   "synthetic:<name>[@seed]"  true shapes, seeded weights; see SyntheticModelNames()
//   a folder                   config.json with model.safetensors or model.safetensors.index.json,
//                              and the files of sentence-transformers if there; or attendant.json
//                              with the safetensors of a torch module (see torch_modules.h)
// Checks everything that can be checked without reading tensor data; all problems of a file come in
// one message that names file, tensor, expected and found. The rest is checked as weights are read.
// NOT_FOUND: nothing there. INVALID_ARGUMENT: refused (W1 to W13 of the docs).
//
// `weights_sha256` is the digest of the weight file; of several, the SHA-256 of their digests in
// hexadecimal, one after the other in the order of the files' paths:
//   sha256sum model-*.safetensors | cut -c 1-64 | tr -d '\n' | sha256sum
// Only if it is given are the files read for it.
absl::StatusOr<Checkpoint> OpenCheckpoint(const std::string& source,
                                          const CheckpointOptions& options);

// The same, for showing what there is: when a source is refused, `found` has what was found out
// until then. The description is unknown as long as it has no layers; `weights` are there if OK.
absl::Status InspectCheckpoint(const std::string& source, const CheckpointOptions& options,
                               Checkpoint& found);

// Reads every weight of the model and drops it: what only values show (W1, W12), one problem for
// each tensor. Needs the memory of the largest one.
std::vector<std::string> ListValueProblems(const ModelDescription& description,
                                           WeightSource& weights);

// Names that may follow "synthetic:", for help and error messages.
std::vector<std::string> SyntheticModelNames();

}  // namespace attendant
