// CachedVectors: the vectors of a request found in the cache, and those left to compute.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/cache/result_cache.h"
#include "server/execution/response.h"
#include "server/request/compute_request.h"

namespace attendant::server {

// The cache holds pooled and sparse vectors of whole sequences, including class scores, but neither
// token rows nor attention. Used by one thread at a time.
class CachedVectors {
 public:
  // Looks up each sequence. Returns null if such results are not cached. `cache` must outlive the
  // object.
  static std::shared_ptr<CachedVectors> Find(const ComputeRequest& request, ResultCache& cache);

  // Returns the sequences to compute, in ascending order; the first of equal ones.
  absl::Span<const int64_t> missing() const { return missing_; }

  // Caches the results of the missing sequences, in their order, and returns the response for all
  // sequences, or RESOURCE_EXHAUSTED without memory for it.
  absl::StatusOr<Response> Complete(Response computed);

  // The same if nothing is missing. `request` must be the argument of Find.
  absl::StatusOr<Response> Answer(const ComputeRequest& request);

 private:
  CachedVectors(const ComputeRequest& request, ResultCache& cache);

  void TakeComputed(Response& computed);
  ResultCache::Result ResultOf(Response& computed, int64_t sequence, int64_t first_element) const;
  absl::Status Join(Response& response) const;
  absl::Status JoinSparse(Response& response) const;

  ResultCache& cache_;
  const DataType dtype_;
  const bool sparse_;
  const int64_t tokens_;  // of all sequences
  int64_t width_ = 0;     // of pooled vectors; 0 without them
  std::vector<int64_t> missing_;
  std::vector<CacheKey> missing_keys_;
  std::vector<int64_t> places_;  // [B]: index in `missing_`, or -1 if found
  // [B]: the pooled vector's elements, and the sparse vector's indices and weights; null until
  // computed.
  std::vector<ResultCache::Result> results_;
};

}  // namespace attendant::server
