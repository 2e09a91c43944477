// CheckpointOptions, what a caller may set when it opens a checkpoint, and Checkpoint, what it gets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

struct CheckpointOptions {
  int64_t max_model_bytes = int64_t{64} << 30;   // of all weight files together
  int64_t max_header_bytes = int64_t{16} << 20;  // of a safetensors header
  bool allow_nonfinite_weights = false;          // whether NaN and infinities are accepted
  std::string weights_sha256;                    // lower-case hex; empty: not checked
  std::string prune_file;  // the heads to leave out, see engine/checkpoint/pruning.h; empty: none
};

// A tensor of the weight files, and what becomes of it.
struct CheckpointTensor {
  std::string file;
  std::string name;
  std::string dtype;  // as spelled in the file, such as "BF16"
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  // Canonical names (weight_source.h) of the weights that it holds, each in equal shares of its
  // rows, in this order. Empty: it is not used.
  std::vector<std::string> weights;
};

struct Checkpoint {
  ModelDescription description;
  std::unique_ptr<WeightSource> weights;
  std::vector<CheckpointTensor> tensors;    // of all files, sorted by name; embedded: none
  std::vector<std::string> unused_tensors;  // in the files, but not of the encoder
  std::vector<std::string> warnings;        // for the log, such as a wrong total_size
};

}  // namespace attendant
