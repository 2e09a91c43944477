// The steps from the --model settings to loaded models: opening the checkpoints, checking limits
// and memory, and reading the weights. Whatever can be refused without reading weights is refused
// before the first weight is read.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/checkpoint.h"
#include "server/base/clock.h"
#include "server/host/memory_limit.h"
#include "server/host/thread_plan.h"
#include "server/models/served_model.h"
#include "server/settings/settings.h"

namespace attendant::server {

// A model whose checkpoint has been opened and checked, without its weights.
struct OpenedModel {
  ModelSetting setting;
  Checkpoint checkpoint;
};

// Returns the options with which the server opens the checkpoint of a model.
CheckpointOptions CheckpointOptionsOf(const ModelSetting& setting, const Settings& settings);

// Opens every model without reading its weights. The result has the overlays last, so that every
// base precedes its overlays. An error names the model.
absl::StatusOr<std::vector<OpenedModel>> OpenModels(const Settings& settings);

// Returns --memory-limit-bytes if it is set, otherwise the result of MeasureMemoryLimit.
MemoryLimit MemoryLimitOf(const Settings& settings);

// Returns the bytes of the largest request message that any of the models accepts:
// max_request_tokens x (E x 4 + 32) + 64 KiB, where E is the widest input row of the models, at
// least `least_width`. The 32 bytes per token allow for a mask, or for a token id, a type, a
// position and a mask, all int64. Returns INVALID_ARGUMENT if the message would exceed gRPC's
// maximum of 2 GiB.
absl::StatusOr<int64_t> LargestRequestBytes(absl::Span<const OpenedModel> models,
                                            int64_t max_request_tokens, int64_t least_width = 0);

// The least memory that the server needs, in bytes, by purpose.
struct MemoryNeed {
  int64_t weights = 0;      // all copies, extra memory for loading, and tokenizers
  int64_t activations = 0;  // the runs of all instances
  int64_t requests = 0;     // the largest request and a response of the same size
  int64_t transport = 0;    // additional memory of gRPC
  int64_t cache = 0;        // cached results

  int64_t total() const;  // INT64_MAX if the sum overflows
  int64_t largest_request() const { return requests / 2; }
};

// Returns the maximum number of tokens in a run.
int64_t RunTokens(const Settings& settings);

// Predicts the memory for serving the models. Returns the errors of LargestRequestBytes, and, with
// the name of the model, those of Encoder::PredictLoadBytes, Encoder::PredictOverlayBytes and
// EncoderRun::PredictBytes.
absl::StatusOr<MemoryNeed> PredictMemory(absl::Span<const OpenedModel> models,
                                         const Settings& settings, const ThreadPlan& plan);

// Returns RESOURCE_EXHAUSTED, naming every part of the sum, if the server would need more memory
// than `limit`. Also returns the errors of PredictMemory.
absl::Status CheckMemory(absl::Span<const OpenedModel> models, const Settings& settings,
                         const ThreadPlan& plan, const MemoryLimit& limit);

// Returns the memory, in bytes, for requests, their responses and registered memories: the part of
// `limit`, which `need` fits, that weights, activations, the cache and gRPC leave free. At most 2
// GiB if the limit is the machine's memory.
int64_t RequestBudget(const MemoryNeed& need, const MemoryLimit& limit);

// Returns gRPC's memory quota for a server with this request budget: a quarter more, because gRPC
// slows down before it reaches its quota, and admission should refuse first.
int64_t TransportQuota(int64_t request_budget);

// Reads and packs the weights of `models`, in the order returned by OpenModels. Every node of the
// plan gets a copy, written by a thread bound to that node. Logs progress, timed by `clock`, and
// warnings and unused tensors. An error names the model.
absl::StatusOr<ServedModels> LoadModels(std::vector<OpenedModel> models,
                                        const ThreadPlan& plan = {},
                                        const Clock& clock = RealClock());

}  // namespace attendant::server
