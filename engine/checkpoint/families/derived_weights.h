// Weights that files have in another form than the description, or need not have: patch
// embeddings, rows stacked by head or expert, sinusoids of positions, rotary frequencies, and how
// two towers are compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/safetensors.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns the first of `places` that a file has, or nullptr if there is none.
const FileTensor* FindFirst(absl::Span<const TensorPart> places, const WeightBinder& binder);

// Returns the patch embedding by what the file has of it, beside what the config says; or none.
std::optional<PatchEmbeddingShape> DescribePatchEmbedding(const Family& family,
                                                          const std::string& prefix,
                                                          const ModelDescription& model,
                                                          const WeightBinder& binder);

// Returns the shape that a weight has in the file, where its `tensor` was found or is null: a
// convolution keeps the axes of its patches, and a class token may be a vector.
std::vector<int64_t> ShapeInFiles(const WeightSpec& spec, const ModelDescription& model,
                                  const FileTensor* tensor);

// Takes the weight from the first of `places` that a file has, of which the layer's shape says how
// many heads or experts it stacks. Problems are those of WeightBinder::Bind.
void BindWeight(const WeightSpec& spec, std::vector<TensorPart> places, const LayerShape& layer,
                WeightBinder& binder);

// Whether AddDerivedWeights makes this weight if the files do not have it.
bool IsDerived(const Family& family, const std::string& name);

// Binds what AddDerivedWeights takes from the files. Adds a problem if the table of positions is
// not that of the patches of an image.
void BindDerivedWeights(const Family& family, const std::string& prefix,
                        const ModelDescription& model, WeightBinder& binder);

// Adds the sinusoids that the files do not have to the weights. Takes the rotary frequencies of the
// files, where the family keeps them there, in place of those of the config, and describes how the
// vectors of two towers are compared.
absl::Status AddDerivedWeights(const Family& family, Checkpoint& checkpoint);

}  // namespace attendant
