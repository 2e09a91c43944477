// Slices of a request: some of its sequences, computed in a batch of their own.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "server/request/compute_request.h"

namespace attendant::server {

// Returns whether the request's sequences can be computed in different batches. They cannot if they
// share an attention bias or cross-attention rows, which each slice would convert or project again.
bool CanBeSliced(const ComputeRequest& request);

// Returns the request for some of its sequences, in ascending order. It must be an EncodeRequest of
// whole sequences without bias and with no outputs other than pooled and sparse vectors. All other
// properties are unchanged.
ComputeRequest SequencesAt(ComputeRequest request, absl::Span<const int64_t> sequences);

// Returns a slice of a sliceable request. Its `layout` locates the rows in the tensors of the whole
// request, which are not copied; selected tokens of other sequences become -1.
ComputeRequest SequencesOf(const ComputeRequest& request, int64_t first, int64_t count);

}  // namespace attendant::server
