// A tiny checkpoint of each family, written from what is known of its files.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant {

// How the rows of a tensor make a weight.
enum class Layout {
  kRows,
  kTransposed,  // [in, out] for a weight [out, in]
  kEachHead,    // such rows of each of two heads
};

// Rows [index / count, (index + 1) / count) of the tensor `in_file` are the weight `canonical`.
struct WeightName {
  std::string canonical;
  std::string in_file;
  int64_t index = 0;
  int64_t count = 1;
  Layout layout = Layout::kRows;
};

// A family's config and the names in its files.
struct TinyFamily {
  std::string name;
  std::string config;
  std::vector<WeightName> weights;  // every weight of the model
  std::vector<TestTensor> others;   // other tensors of the files
  std::string computed = {};        // a weight that is computed if the files do not have it
};

// Expands `patterns` with "{i}" for each of `layers` weight sets. The name of a linear layer or a
// norm stands for its weight, and with " +" after it also for its bias.
std::vector<WeightName> Expand(const std::vector<WeightName>& patterns, int layers);

// Returns checkpoints with two or more layers, E 8, H 2, and other sizes that all differ.
std::vector<TinyFamily> TinyFamilies();

// Those in the format of BERT or of BART, which are among them.
std::vector<TinyFamily> TinyBertFamilies();

// Prints its name, which becomes part of test names.
inline void PrintTo(const TinyFamily& family, std::ostream* out) { *out << family.name; }

// Returns the tensors of the family's file, with TestValues for their names in the shapes that the
// config implies. Fails the test if the config is refused.
std::vector<TestTensor> TensorsOf(const TinyFamily& family);

// Writes config.json and model.safetensors.
void WriteFamily(const TempFolder& folder, const TinyFamily& family);

}  // namespace attendant
