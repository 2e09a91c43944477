// A model as the protocol describes it. Each function sets some of the answer's fields.
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

// Sets the fields that follow from what the checkpoint says, apart from its weights.
void SetDescription(const ModelDescription& model, const Tokenization& tokenization,
                    v1::GetModelResponse& out);

v1::ScoreFunction ToProto(ScoreFunction function);

// The description is one whose weights can be listed, as ListStageCosts needs it.
void SetStageCosts(const ModelDescription& model, v1::GetModelResponse& out);

// All but whose matrix products were found best.
void SetComputeMode(const ComputeMode& mode, v1::GetModelResponse& out);

// `now` is the time for which the correction is told.
void SetCostModel(const CostModel& cost, absl::Time now, v1::GetModelResponse& out);

// Whether it takes texts, and how fast.
void SetTexts(const ModelTokenizer& tokenizer, v1::GetModelResponse& out);

// All but `rows_per_thread_from`, which is measured while the model is loaded.
void SetThreadPlan(const ThreadPlan& plan, v1::GetModelResponse& out);

}  // namespace attendant::server
