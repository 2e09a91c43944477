// Weights that files have in another form than the description, or need not have: patch
// embeddings, rows stacked by head or expert, sinusoids of positions, rotary frequencies, and how
// two towers are compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/safetensors.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/model/model_description.h"

namespace attendant {

// The tensors of a family in its files. All members must outlive it.
struct FamilyTensors {
  // The places where a file may have the weight `canonical`; see PlacesInFile.
  std::vector<TensorPart> Places(const std::string& canonical) const {
    return PlacesInFile(family, prefix, canonical);
  }
  // The tensor in the first of these places that a file has, or nullptr.
  const FileTensor* Find(const std::string& canonical) const;
  bool Has(const std::string& canonical) const { return Find(canonical) != nullptr; }

  const Family& family;
  std::string prefix;  // of the names of the encoder's tensors
  WeightBinder& binder;
};

// Returns the patch embedding that the file and the config describe, if there is one.
std::optional<PatchEmbeddingShape> DescribePatchEmbedding(const FamilyTensors& tensors,
                                                          const ModelDescription& model);

// Returns the shape that a weight has in the file, where its `tensor` was found or is null: a
// convolution keeps the axes of its patches, and a class token may be a vector.
std::vector<int64_t> ShapeInFiles(const WeightSpec& spec, const ModelDescription& model,
                                  const FileTensor* tensor);

// Takes the weight from the first of `places` that a file has. The layer's shape gives the number
// of heads or experts stacked there. Adds the same problems as WeightBinder::Bind.
void BindWeight(const WeightSpec& spec, std::vector<TensorPart> places, const LayerShape& layer,
                WeightBinder& binder);

// Whether AddDerivedWeights makes this weight if the files do not have it.
bool IsDerived(const Family& family, const std::string& name);

// Binds what AddDerivedWeights takes from the files. Adds a problem if the position table does not
// fit the patches of an image.
void BindDerivedWeights(const FamilyTensors& tensors, const ModelDescription& model);

// Adds the sinusoids that the files do not have to the weights. If the family keeps rotary
// frequencies in its files, they replace the frequencies from the config. Also describes how the
// vectors of two towers are compared.
absl::Status AddDerivedWeights(const Family& family, Checkpoint& checkpoint);

}  // namespace attendant
