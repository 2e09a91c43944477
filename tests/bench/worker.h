// Contender, the part of a benchmark worker that computes, and the protocol of the workers. Each
// worker is a process, which the driver calls in turn with the others.
//
// The driver writes a line, and the worker answers with one, or with "error MESSAGE":
// clang-format off
//   prepare FILE  -> ok          takes up a case: {"batches": [[[id, …], …], …]}, sequences of token
//                                ids in batches
//   run N         -> ok S1 … SN  computes the case N times; seconds of each
//   save FILE     -> ok          computes it once; last hidden states, raw float32 [T, E], in the
//                                order of the case
//   facts         -> ok {…}      what the contender knows about itself
// clang-format on
// Before the first command, the worker writes "ready", or it writes "refused REASON" and ends.
// tests/bench/peers/worker.py speaks this protocol too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/compute_type.h"

namespace attendant::bench {

// A packed batch of token ids.
struct Batch {
  std::vector<int32_t> token_ids;   // [T]
  std::vector<int32_t> cu_seqlens;  // [sequences + 1]

  int64_t tokens() const { return static_cast<int64_t>(token_ids.size()); }
};

double SecondsNow();

class Contender {
 public:
  virtual ~Contender() = default;

  virtual absl::Status Prepare(std::vector<Batch> batches) = 0;
  // Returns the seconds of one pass over the prepared case.
  virtual absl::StatusOr<double> Run() = 0;
  virtual absl::Status Save(const std::string& file);
  virtual nlohmann::json Facts() const { return nlohmann::json::object(); }
};

// The options on the command line: --model SOURCE --dtype f32|bf16x3|bf16|int8 --weights
// auto|f32|bf16|f16 --threads N (0: the CPU budget) --isa NAME (a cap, as the server's)
// --gemm auto|onednn|tiles|vector --split team|rows --row-multiple 64|16 --products plain|engine.
// The last of several values counts.
struct WorkerOptions {
  std::string model;
  std::string dtype = "f32";
  std::string weights = "auto";
  std::string isa = "best";
  int threads = 0;
  std::string gemm = "auto";
  std::string split = "team";
  int row_multiple = 64;
  std::string products = "plain";
};

// Returns the type of this name. INVALID_ARGUMENT: there is none.
absl::StatusOr<ComputeType> TypeNamed(const std::string& name);

// The main function of a worker: makes the contender, then answers until the end of the input.
int ServeContender(
    int argc, char** argv,
    const std::function<absl::StatusOr<std::unique_ptr<Contender>>(const WorkerOptions&)>& make);

}  // namespace attendant::bench
