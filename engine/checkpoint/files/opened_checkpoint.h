// The options for opening a checkpoint, and the opened checkpoint. The rules W1 to W15 are
// explained in engine/checkpoint/README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/files/choices.h"
#include "engine/checkpoint/files/tokenization.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

struct CheckpointOptions : CheckpointChoices {
  int64_t max_model_bytes = int64_t{64} << 30;   // all weight files together (W1)
  int64_t max_header_bytes = int64_t{16} << 20;  // a safetensors header (W2)
};

// A tensor of the weight files, and the weights that are made of it.
struct CheckpointTensor {
  std::string file;
  std::string name;
  std::string dtype;  // as spelled in the file, such as "BF16"
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  // Canonical names (weight_source.h) of the weights that it holds, in the order of their rows.
  // Empty if the tensor is not used.
  std::vector<std::string> weights;
  bool is_interleaved = false;  // the rows of a weight do not follow each other
};

struct Checkpoint {
  ModelDescription description;
  std::unique_ptr<WeightSource> weights;
  std::vector<CheckpointTensor> tensors;    // all files, by name; none if embedded
  std::vector<std::string> unused_tensors;  // in the files, but not in the encoder
  Tokenization tokenization;
  std::vector<std::string> warnings;  // for the log, such as a wrong total_size
};

}  // namespace attendant
