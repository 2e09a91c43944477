// Gauges of the served models.
#pragma once

#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace attendant::server {

// The gauges of a model in /metrics.
struct ModelGauges {
  std::string model;
  int64_t version = 0;  // in the model repository; 0 for other models
  std::string family;
  std::string compute_type;
  int64_t layers = 0;
  int64_t heads = 0;  // of an unpruned layer
  int64_t hidden_size = 0;
  int64_t weight_bytes = 0;      // of all copies, excluding those shared with a base
  int64_t activation_bytes = 0;  // of all instances
  // The state of its CostModel (server/batching/cost_model.h).
  double seconds_per_layer = 0;
  double product_flops = 0;  // per second
  double attention_flops = 0;
  double correction = 1;
};

// Thread-safe.
class ModelGaugeFamilies {
 public:
  // `registry` must outlive it.
  explicit ModelGaugeFamilies(prometheus::Registry& registry);

  // Replaces all series by those of these models.
  void Set(absl::Span<const ModelGauges> models);

 private:
  using Family = prometheus::Family<prometheus::Gauge>;
  using Series = std::set<std::pair<Family*, prometheus::Gauge*>>;

  void Put(const ModelGauges& model, Series& series);

  Family& info_;
  Family& bytes_;
  Family& seconds_per_layer_;
  Family& flops_;
  Family& correction_;
  absl::Mutex mutex_;
  Series series_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
