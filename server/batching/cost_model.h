// The cost model of a served model, which predicts the seconds that an instance needs for a batch
// from its floating point operations.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/model/model_description.h"
#include "engine/model/model_facts.h"

namespace attendant::server {

// The parts of each layer that a request computes. Each includes the earlier ones.
enum class CostedPart { kInputs, kContext, kProjected, kWhole };

struct LayerRange {
  int64_t first_layer = 0;
  int64_t layers = 1;
  CostedPart part = CostedPart::kWhole;
};

// The rates at which an instance computes a model.
struct CostRates {
  double seconds_per_layer = 0;  // fixed cost of a batch
  double product_flops = 50e9;   // floating point operations per second of the linear layers
  double attention_flops = 10e9;

  bool operator==(const CostRates&) const = default;
};

// One timed run of a layer.
struct CostTrial {
  double products = 0;   // floating point operations of its linear layers
  double attention = 0;  // of attention
  double seconds = 0;
};

// Fits the rates to three trials: `few` has few tokens, `many` has many in short sequences, and
// `longs` as many in long sequences. Where noise would make a rate or the constant negative, or the
// trials do not determine it, it is bounded by the average time per operation of a trial.
CostRates FitRates(const CostTrial& few, const CostTrial& many, const CostTrial& longs);

// Seconds of a batch: per_batch once, and the other members times their counts.
struct SpanCost {
  double per_batch = 0;
  double per_token = 0;
  double per_pair = 0;  // per pair of query and key
  double per_sequence = 0;

  double OfSequence(int64_t queries, int64_t keys) const {
    return per_sequence + per_token * static_cast<double>(queries) +
           per_pair * static_cast<double>(queries) * static_cast<double>(keys);
  }
};

// Thread-safe.
class CostModel {
 public:
  explicit CostModel(const ModelDescription& description);

  // Sets the measured rates. Until then, default rates apply.
  void SetRates(const CostRates& rates);
  bool has_rates() const;
  CostRates rates() const;

  // Returns the average operations of a layer for such sequences, for a timed trial.
  CostTrial OperationsOfLayer(int64_t sequences, int64_t length) const;

  // Without the correction. The layers must exist in the model.
  SpanCost Predict(const LayerRange& range) const;

  // Returns the ratio of measured to predicted seconds. It moves slowly, so that a single disturbed
  // batch hardly counts, stays within [1/8, 8], and fades towards 1 without measurements, so that a
  // slow period of the machine cannot refuse requests forever.
  double correction(absl::Time now) const;
  // `predicted` excludes the correction. Ignores values that are not positive.
  void Observe(double predicted, double measured, absl::Time now);

 private:
  double LogOfCorrection(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<LayerCost> layers_;
  mutable absl::Mutex mutex_;
  bool has_rates_ ABSL_GUARDED_BY(mutex_) = false;
  CostRates rates_ ABSL_GUARDED_BY(mutex_);
  double log_ ABSL_GUARDED_BY(mutex_) = 0;  // of the correction at the time of `observed_`
  absl::Time observed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace attendant::server
