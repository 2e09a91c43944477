// From --model settings to loaded models, in two steps: everything that can be refused is refused
// before the first weight is read.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/checkpoint.h"
#include "server/batching/clock.h"
#include "server/host/memory_limit.h"
#include "server/host/thread_plan.h"
#include "server/models/served_model.h"
#include "server/settings/settings.h"

namespace attendant::server {

struct OpenedModel {
  ModelSetting setting;
  Checkpoint checkpoint;
};

// As a server opens it.
CheckpointOptions CheckpointOptionsOf(const ModelSetting& setting, const Settings& settings);

// Opens every model without reading its weights, overlays behind all others. An error names the
// model.
absl::StatusOr<std::vector<OpenedModel>> OpenModels(const Settings& settings);

// --memory-limit-bytes, or else what MeasureMemoryLimit says.
MemoryLimit MemoryLimitOf(const Settings& settings);

// Bytes of the largest request message that any of the models takes: --max-request-tokens x (E x 4
// + 32) + 64 KiB. The 32 are a mask, or token ids, types, positions and a mask, in int64.
absl::StatusOr<int64_t> LargestRequestBytes(absl::Span<const OpenedModel> models,
                                            int64_t max_request_tokens);

// The same; INVALID_ARGUMENT if --receive-memory-bytes could not hold it.
absl::StatusOr<int64_t> CheckRequestBytes(absl::Span<const OpenedModel> models,
                                          const Settings& settings);

struct MemoryNeed {
  int64_t weights = 0;      // of all copies, and what loading takes on top
  int64_t activations = 0;  // of all instances
  int64_t receiving = 0;
  int64_t queue = 0;       // waiting requests with their answers
  int64_t running = 0;     // answers being computed
  int64_t registered = 0;  // memories of PutMemory

  int64_t total() const;  // or the largest number
};

// Tokens that a run has room for.
int64_t RunTokens(const Settings& settings);

// Errors of Encoder::PredictLoadBytes and EncoderRun::PredictBytes name the model.
absl::StatusOr<MemoryNeed> PredictMemory(absl::Span<const OpenedModel> models,
                                         const Settings& settings, const ThreadPlan& plan);

// RESOURCE_EXHAUSTED, with every share by name, if weights, activations, receiving, queue, answers
// and registered memories together pass the limit.
absl::Status CheckMemory(absl::Span<const OpenedModel> models, const Settings& settings,
                         const ThreadPlan& plan, const MemoryLimit& limit);

// Reads and packs the weights, bases before their overlays, as OpenModels gives them, once for each
// of the plan's nodes, on a thread that is bound to it; logs progress by `clock`, warnings and
// unused tensors. An error names the model.
absl::StatusOr<ServedModels> LoadModels(std::vector<OpenedModel> models,
                                        const ThreadPlan& plan = {},
                                        const Clock& clock = RealClock());

}  // namespace attendant::server
