// The report of --describe: a model as a server with these settings would serve it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attendant/v1/encoder_service.pb.h"
#include "engine/base/compute_type.h"
#include "engine/model/model_facts.h"
#include "server/describe/query_key_ranks.h"
#include "server/host/memory_limit.h"
#include "server/host/thread_plan.h"
#include "server/models/model_loading.h"
#include "server/models/model_tokenizer.h"
#include "server/settings/settings.h"

namespace attendant::server {

struct WeightMemory {
  ComputeType type = ComputeType::kF32;
  int64_t bytes = 0;    // packed
  std::string refusal;  // why this CPU cannot compute so; empty: it can
};

struct ModelReport {
  OpenedModel model;                  // the description is unknown if it has no layers
  std::vector<std::string> refusals;  // empty: the server would serve it

  // What follows is there if the description is known and sound.
  std::vector<WeightUse> weights;
  std::vector<WeightMemory> weight_memory;  // of every compute type
  int64_t run_tokens = 0;                   // that the activations have room for
  int64_t run_bytes = 0;                    // of one instance
  std::optional<MemoryNeed> need;           // of the whole server; not if the CPU cannot compute so
  std::vector<QueryKeyRanks> ranks;         // of each weight set, if asked for
  std::string no_ranks;                     // why there are none all the same
  std::shared_ptr<const ModelTokenizer> tokenizer;
  ThreadPlan plan;
  MemoryLimit limit;
};

// `settings` has one model. Reads every weight of it, one at a time; those of queries and keys once
// more if `ranks` are asked for.
ModelReport InspectModel(const Settings& settings, const ThreadPlan& plan, const MemoryLimit& limit,
                         bool ranks = false);

// As far as it is known without loading the model, what GetModel would answer. `gemm` is what the
// settings ask for; empty: the best.
v1::GetModelResponse Describe(const ModelReport& report);

}  // namespace attendant::server
