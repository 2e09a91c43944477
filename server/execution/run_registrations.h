// Registers the keys and values of a batch of PutMemory requests.
#pragma once

#include <memory>
#include <vector>

#include "engine/layers/encoder.h"
#include "server/batching/job.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Projects the rows of all jobs together and adds the keys and values of each to the store. `batch`
// has RegistrationJobs of one key; those that are answered are reset.
void RunRegistrations(std::vector<std::unique_ptr<Job>>& batch, EncoderRun& run,
                      const ServiceContext& context);

}  // namespace attendant::server
