// The cost model of a served model: predicts the seconds that an instance takes for a batch, from
// the batch's floating point operations.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/model/model_description.h"
#include "engine/model/model_facts.h"

namespace attendant::server {

// The part of each layer that a request computes. Each includes those before it.
enum class LayerPart { kInputs, kContext, kProjected, kWhole };

struct LayerRange {
  int64_t first_layer = 0;
  int64_t layers = 1;
  LayerPart part = LayerPart::kWhole;
};

// The rates at which an instance computes a model.
struct CostRates {
  double seconds_per_layer = 0;  // of a batch, whatever is in it
  double product_flops = 50e9;   // floating point operations per second of the linear layers
  double attention_flops = 10e9;

  bool operator==(const CostRates&) const = default;
};

// One timed run of a layer.
struct CostTrial {
  double products = 0;   // floating point operations of its linear layers
  double attention = 0;  // those between them
  double seconds = 0;
};

// Returns the rates at which the three trials take their times: `few` has few tokens, `many` has
// many in short sequences, and `longs` as many in long ones. Where noise would make a rate or the
// constant negative, or there is nothing to tell it from, it is bounded by what all operations of a
// trial take on average.
CostRates FitRates(const CostTrial& few, const CostTrial& many, const CostTrial& longs);

// The seconds of a batch: per_batch once, and the other members times what is in the batch.
struct SpanCost {
  double per_batch = 0;
  double per_token = 0;
  double per_pair = 0;  // of a query and a key
  double per_sequence = 0;

  double OfSequence(int64_t queries, int64_t keys) const {
    return per_sequence + per_token * static_cast<double>(queries) +
           per_pair * static_cast<double>(queries) * static_cast<double>(keys);
  }
};

// The ratio of measured to predicted seconds. It moves slowly, so that a single batch which was
// disturbed hardly counts, stays within [1/8, 8], and fades towards 1 while nothing is measured, so
// that a bad time on the machine cannot refuse requests for ever. Not thread-safe.
class Correction {
 public:
  double At(absl::Time now) const;
  // Ignores what is not positive.
  void Observe(double predicted, double measured, absl::Time now);

 private:
  double LogAt(absl::Time now) const;

  double log_ = 0;
  absl::Time observed_ = absl::InfinitePast();
};

// Thread-safe.
class CostModel {
 public:
  explicit CostModel(const ModelDescription& description);

  // Sets what was measured. Until then the rates are a guess.
  void SetRates(const CostRates& rates);
  bool has_rates() const;
  CostRates rates() const;

  // The average operations of a layer for such sequences, to be timed.
  CostTrial OperationsOfLayer(int64_t sequences, int64_t length) const;

  // Without the correction. The layers must be within the model.
  SpanCost Predict(const LayerRange& range) const;

  double correction(absl::Time now) const;
  // `predicted` is without the correction.
  void Observe(double predicted, double measured, absl::Time now);

 private:
  const std::vector<LayerCost> layers_;
  mutable absl::Mutex mutex_;
  bool has_rates_ ABSL_GUARDED_BY(mutex_) = false;
  CostRates rates_ ABSL_GUARDED_BY(mutex_);
  Correction correction_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
