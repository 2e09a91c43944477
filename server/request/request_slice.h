// Slices of a request: some of its sequences, which are computed in a batch of their own.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "server/request/compute_request.h"

namespace attendant::server {

// Whether the sequences of the request may be computed in different batches. Not if they share an
// attention bias or rows of cross-attention, which each slice would convert or project anew.
bool CanBeSliced(const ComputeRequest& request);

// The request for some of its sequences, ascending, of an EncodeRequest that has no bias and no
// outputs but pooled and sparse vectors, of sequences that come whole. Everything else of it stays.
ComputeRequest SequencesAt(ComputeRequest request, absl::Span<const int64_t> sequences);

// The slice of a request that can be sliced, which is a request for some of its sequences. Its
// `layout` says where their rows are in the tensors of the whole, which are not copied; tokens that
// are selected from other sequences are -1.
ComputeRequest SequencesOf(const ComputeRequest& request, int64_t first, int64_t count);

}  // namespace attendant::server
