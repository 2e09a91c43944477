// ServedRepository, a model repository connected to the parts of the server that its changes reach.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/metrics/server_metrics.h"
#include "server/models/health_states.h"
#include "server/models/model_table.h"
#include "server/repository/model_repository.h"
#include "server/repository/version_loader.h"

namespace attendant::server {

// Everything outlives the repository.
struct RepositoryParts {
  ModelTable& models;
  HealthStates& health;
  CrossKvStore& cross_kv;
  ServerMetrics& metrics;
  Clock& clock;
};

class ServedRepository {
 public:
  // Loads what --model-repository has, and follows its changes from then on. UNAVAILABLE: its
  // folder cannot be listed.
  static absl::StatusOr<std::unique_ptr<ServedRepository>> Start(LoaderOptions options,
                                                                 RepositoryParts parts);
  // Changes nothing from now on. Does not wait. Any thread.
  void Stop();

 private:
  ServedRepository(LoaderOptions options, RepositoryParts parts);
  RepositoryHooks Hooks(RepositoryParts parts);

  VersionLoader loader_;
  ModelRepository repository_;
};

}  // namespace attendant::server
