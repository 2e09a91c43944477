// Derives the limits of the server's parts from its settings.
#pragma once

#include <cstdint>

#include "server/admission/admission.h"
#include "server/batching/batch_policy.h"
#include "server/batching/batch_queue.h"
#include "server/host/memory_limit.h"
#include "server/host/thread_plan.h"
#include "server/http/http_connections.h"
#include "server/settings/settings.h"

namespace attendant::server {

QueueLimits QueueLimitsOf(const Settings& settings);

BatchLimits BatchLimitsOf(const Settings& settings, const ThreadPlan& plan);

// Returns `total`, with the reserve that a single peer leaves free.
BudgetLimits WithReserve(int64_t total, const Settings& settings);

// Excludes the memory for requests, which is known once the models are.
AdmissionLimits AdmissionLimitsOf(const Settings& settings, const MemoryLimit& limit);

// Returns the process's `limits`, adjusted by the settings.
HttpLimits HttpLimitsOf(const Settings& settings, HttpLimits limits);

}  // namespace attendant::server
