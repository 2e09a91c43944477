// The report of --describe: a model as these settings would serve it.
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
#include "server/settings/read_settings.h"

namespace attendant::server {

struct WeightMemory {
  ComputeType type = ComputeType::kF32;
  int64_t bytes = 0;    // packed
  std::string refusal;  // why this CPU cannot compute in this type, or empty
};

struct ModelReport {
  OpenedModel model;                  // the description is unknown if it has no layers
  std::vector<std::string> refusals;  // empty: the server would serve it

  // Set if the description is known and valid.
  std::vector<WeightUse> weights;
  std::vector<WeightMemory> weight_memory;  // for every compute type
  int64_t run_tokens = 0;                   // maximum tokens of a run
  int64_t run_bytes = 0;                    // per instance
  // Of the whole server; not set if the CPU cannot compute in this type.
  std::optional<MemoryNeed> need;
  std::vector<QueryKeyRanks> ranks;  // of each weight set, if requested
  std::string no_ranks;              // why requested ranks are missing
  std::shared_ptr<const ModelTokenizer> tokenizer;
  ThreadPlan plan;
  MemoryLimit limit;
};

// `settings` has one model. Reads every weight, one at a time; those of queries and keys a second
// time for `ranks`.
ModelReport InspectModel(const Settings& settings, const ThreadPlan& plan, const MemoryLimit& limit,
                         bool ranks = false);

// Returns what GetModel would report, as far as it is known without loading the model. `gemm` is
// the setting; empty means the fastest.
v1::GetModelResponse Describe(const ModelReport& report);

// Prints a report about the model in the settings to standard output. Exit codes: 0 it would be
// served; 1 it would be refused, or the output cannot be written.
int DescribeModel(const Settings& settings, const DescribeOptions& options);

// Returns a JSON document with a final line break; its `description` is Describe(report).
std::string ToJson(const ModelReport& report);

// Returns lines without other control characters, whatever the file names contain.
std::string ToText(const ModelReport& report);

}  // namespace attendant::server
