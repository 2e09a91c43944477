// Registers the keys and values of a batch of PutMemory requests.
#pragma once

#include "engine/layers/encoder.h"
#include "server/execution/request_job.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Projects the rows of all jobs together, adds the keys and values of each to the store, and
// answers each job. `batch` has RegistrationJobs.
void RunRegistrations(const Batch<ServiceJob>& batch, EncoderRun& run,
                      const ServiceContext& context);

}  // namespace attendant::server
