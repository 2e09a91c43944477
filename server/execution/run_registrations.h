// Registers the keys and values of a batch of PutMemory requests.
#pragma once

#include "absl/time/time.h"
#include "engine/layers/encoder.h"
#include "server/execution/request_job.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Projects the rows of all jobs together, adds the keys and values of each to the store, and
// answers each job. `batch` has RegistrationJobs. The batch is measured from `free_since` on, as
// BatchReport says, which becomes the time at which there are results, if there are any.
void RunRegistrations(const Batch<ServiceJob>& batch, EncoderRun& run,
                      const ServiceContext& context, absl::Time& free_since);

}  // namespace attendant::server
