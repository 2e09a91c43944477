// PositionTables: precomputed tables of a model's relative positions, for all positions that a run
// may have: biases that are added to scores, and rotations of queries and keys.
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
#include "engine/kernels/attention/attention.h"
#include "engine/kernels/rope.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe.
class PositionTables {
 public:
  // `bucket_bias` [buckets, H] is the learned bias of each bucket of distances. It is empty unless
  // the model's relative positions are kBuckets.
  PositionTables(const ModelDescription& model, int64_t max_tokens,
                 const SharedBuffer<float>& bucket_bias = {});
  PositionTables(const PositionTables&) = delete;
  PositionTables& operator=(const PositionTables&) = delete;

  // Returns the bytes that the constructor allocates.
  static CheckedSize Bytes(const ModelDescription& model, int64_t max_tokens);
  int64_t bytes() const;

  // The bias that relative positions add to the scores of every sequence. May be null.
  const AttentionBias* distances() const { return distances_ ? &*distances_ : nullptr; }
  // Returns `projections` with the table that maps each distance to its row added.
  RelativeScores WithDistanceRows(RelativeScores projections) const;

  bool has_rotary() const { return !rotary_.empty(); }
  // The table of `shape`, which a layer of the model must have.
  const RotaryTable& rotary(const RotaryShape& shape) const;

 private:
  int64_t max_tokens_;
  AlignedBuffer<float> distance_bias_;      // [H, DistanceColumns(max_tokens)], or empty
  std::vector<int32_t> distance_rows_;      // [DistanceColumns(max_tokens)], if disentangled
  std::vector<RotaryTable> rotary_;         // one for each distinct rotation of the layers
  std::optional<AttentionBias> distances_;  // refers to distance_bias_
};

// The position tables of a model's runs. Runs of the same size share their tables. Thread-safe.
class SharedPositionTables {
 public:
  // Returns the tables for these arguments of PositionTables. Only max_tokens may differ between
  // calls.
  std::shared_ptr<const PositionTables> Find(const ModelDescription& model, int64_t max_tokens,
                                             const SharedBuffer<float>& bucket_bias);

 private:
  absl::Mutex mutex_;
  std::map<int64_t, std::weak_ptr<const PositionTables>> by_tokens_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant
