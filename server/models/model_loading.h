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
// max_request_tokens x (E x 4 + 32) + 64 KiB, where E is the widest input row of the models, and at
// least `least_width`. The 32
// bytes per token are for a mask, or for a token id, a type, a position and a mask, all in int64.
// Returns INVALID_ARGUMENT if gRPC cannot transport such a message, which would exceed 2 GiB.
absl::StatusOr<int64_t> LargestRequestBytes(absl::Span<const OpenedModel> models,
                                            int64_t max_request_tokens, int64_t least_width = 0);

// The least memory that the server needs, in bytes, by purpose.
struct MemoryNeed {
  int64_t weights = 0;      // all copies, what loading needs in addition, and tokenizers
  int64_t activations = 0;  // the runs of all instances
  int64_t requests = 0;     // the largest request, and an answer of the same size
  int64_t transport = 0;    // what gRPC takes besides
  int64_t cache = 0;        // results that are kept

  int64_t total() const;  // INT64_MAX if the sum overflows
  int64_t largest_request() const { return requests / 2; }
};

// Returns the number of tokens for which the activations of a run have room.
int64_t RunTokens(const Settings& settings);

// Predicts the memory for serving the models. Returns the errors of LargestRequestBytes, and those
// of Encoder::PredictLoadBytes, Encoder::PredictOverlayBytes and EncoderRun::PredictBytes with the
// name of the model.
absl::StatusOr<MemoryNeed> PredictMemory(absl::Span<const OpenedModel> models,
                                         const Settings& settings, const ThreadPlan& plan);

// Returns RESOURCE_EXHAUSTED, naming every part of the sum, if the server would need more memory
// than `limit`. Also returns the errors of PredictMemory.
absl::Status CheckMemory(absl::Span<const OpenedModel> models, const Settings& settings,
                         const ThreadPlan& plan, const MemoryLimit& limit);

// Returns the memory, in bytes, that requests, their answers and registered memories may take
// together: what weights, activations, the cache and gRPC leave of `limit`, which `need` fits. At
// most 2 GiB if the limit is only what the machine has.
int64_t RequestBudget(const MemoryNeed& need, const MemoryLimit& limit);

// Returns the memory that gRPC may take in all for a server whose requests have that budget. A
// quarter more than the requests, since it slows down before its quota is used up, and the
// admission should be the first to refuse.
int64_t TransportQuota(int64_t request_budget);

// Reads and packs the weights of `models`, which must be in the order in which OpenModels returns
// them. Every node of the plan gets a copy, written by a thread that is bound to that node. Logs
// progress, timed by `clock`, as well as warnings and unused tensors. An error names the model.
absl::StatusOr<ServedModels> LoadModels(std::vector<OpenedModel> models,
                                        const ThreadPlan& plan = {},
                                        const Clock& clock = RealClock());

}  // namespace attendant::server
