// A tiny checkpoint of each family, written from what its files are known to hold.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/checkpoint/model_files.h"

namespace attendant {

// Rows [index / count, (index + 1) / count) of the tensor `in_file` are the weight `canonical`.
struct WeightName {
  std::string canonical;
  std::string in_file;
  int64_t index = 0;
  int64_t count = 1;
};

struct TinyFamily {
  std::string name;
  std::string config;
  std::vector<WeightName> weights;  // every weight of the model
  std::vector<TestTensor> others;   // what the files have beside them
};

// Two or more layers, E 8, H 2 and other sizes that all differ.
std::vector<TinyFamily> TinyFamilies();

// Test names.
inline void PrintTo(const TinyFamily& family, std::ostream* out) { *out << family.name; }

// The tensors of the family's file, with TestValues for their names in the shapes that the config
// gives them. Fails the test if the config is refused.
std::vector<TestTensor> TensorsOf(const TinyFamily& family);

// Writes config.json and model.safetensors.
void WriteFamily(const TempFolder& folder, const TinyFamily& family);

}  // namespace attendant
