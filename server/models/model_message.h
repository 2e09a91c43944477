// Describes a model in a GetModelResponse. Each function sets some of its fields.
#pragma once

#include "absl/time/time.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/base/compute_type.h"
#include "engine/checkpoint/files/tokenization.h"
#include "engine/model/model_description.h"
#include "server/batching/cost_model.h"
#include "server/host/thread_plan.h"
#include "server/models/model_tokenizer.h"

namespace attendant::server {

// Sets the fields that follow from the checkpoint's description, excluding its weights.
void SetDescription(const ModelDescription& model, const Tokenization& tokenization,
                    v1::GetModelResponse& out);

v1::ScoreFunction ToProto(ScoreFunction function);

// Returns the truncation of requests without a side.
v1::Truncation DefaultTruncation(const Tokenization& tokenization);

// The description must have listable weights, as ListStageCosts requires.
void SetStageCosts(const ModelDescription& model, v1::GetModelResponse& out);

// Sets everything but `gemm`.
void SetComputeMode(const ComputeMode& mode, v1::GetModelResponse& out);

// `now` is the time at which to report the correction.
void SetCostModel(const CostModel& cost, absl::Time now, v1::GetModelResponse& out);

// Sets whether the model takes texts, and the tokenizer's speed.
void SetTexts(const ModelTokenizer& tokenizer, v1::GetModelResponse& out);

// Sets everything but `rows_per_thread_from`, which is measured when the model is loaded.
void SetThreadPlan(const ThreadPlan& plan, v1::GetModelResponse& out);

}  // namespace attendant::server
