// PositionTables: the numbers that a model's relative positions add to scores, or rotate queries
// and keys by, for all positions that a run may have.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_size.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/rope.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable, and thread-safe.
class PositionTables {
 public:
  // `bucket_bias` is the bias that the model learned for each bucket of distances, [buckets, H];
  // it is of size 0 if the model's relative positions are of another kind.
  PositionTables(const ModelDescription& model, int64_t max_tokens,
                 const SharedBuffer<float>& bucket_bias = {});
  PositionTables(const PositionTables&) = delete;
  PositionTables& operator=(const PositionTables&) = delete;

  // Returns the bytes of the tables that the constructor will make.
  static CheckedSize Bytes(const ModelDescription& model, int64_t max_tokens);
  int64_t bytes() const;

  // The bias that distances add to the scores of every sequence, or null if they add none.
  const AttentionBias* distances() const { return distances_ ? &*distances_ : nullptr; }
  // Returns `projections` together with the table that gives each distance its row of them.
  RelativeScores WithDistanceRows(RelativeScores projections) const;

  bool has_rotary() const { return !rotary_.empty(); }
  // The table of a rotation that a layer of the model has.
  const RotaryTable& rotary(const RotaryShape& shape) const;

 private:
  int64_t max_tokens_;
  AlignedBuffer<float> distance_bias_;      // [H, DistanceColumns(max_tokens)], or of size 0
  std::vector<int32_t> distance_rows_;      // [DistanceColumns(max_tokens)], if disentangled
  std::vector<RotaryTable> rotary_;         // one for each rotation of the model's layers
  std::optional<AttentionBias> distances_;  // refers to distance_bias_
};

// The tables of a model's runs: those of runs of one size share theirs. Thread-safe.
class SharedPositionTables {
 public:
  // Returns the tables for these arguments of PositionTables, of which only max_tokens may differ
  // from call to call.
  std::shared_ptr<const PositionTables> Find(const ModelDescription& model, int64_t max_tokens,
                                             const SharedBuffer<float>& bucket_bias);

 private:
  absl::Mutex mutex_;
  std::map<int64_t, std::weak_ptr<const PositionTables>> by_tokens_ ABSL_GUARDED_BY(mutex_);
};

// Returns the rows of the learned table that disentangled attention scores tokens against, or 0.
int64_t RelativeRows(const LayerShape& layer);

}  // namespace attendant
