// CachedVectors: which vectors of a request the cache has, and which are to be computed.
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

// The cache has the pooled and sparse vectors of whole sequences, class scores among them, and
// neither rows of tokens nor attention. One thread at a time.
class CachedVectors {
 public:
  // Looks for each sequence. Null: the cache does not have such results. `cache` outlives this.
  static std::shared_ptr<CachedVectors> Find(const ComputeRequest& request, ResultCache& cache);

  // The sequences that are to be computed, ascending; of equal ones, the first.
  absl::Span<const int64_t> missing() const { return missing_; }

  // Keeps the results of the missing sequences, in their order, and returns the response for all
  // sequences. RESOURCE_EXHAUSTED: there is no memory for it.
  absl::StatusOr<Response> Complete(Response computed);

  // The same if nothing is missing. `request` is the one that they were found for.
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
  int64_t width_ = 0;     // of pooled vectors; 0: there are none
  std::vector<int64_t> missing_;
  std::vector<CacheKey> missing_keys_;
  std::vector<int64_t> places_;  // [B]: of each sequence in `missing_`; -1: it was found
  // [B]: the elements of the pooled vector, the indices and the weights of the sparse one; null
  // until it is computed.
  std::vector<ResultCache::Result> results_;
};

}  // namespace attendant::server
