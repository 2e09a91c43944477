// Slices of a request: some of its sequences, which are computed in a batch of their own.
#pragma once

#include <cstdint>

#include "server/request/compute_request.h"

namespace attendant::server {

// Whether the sequences of the request may be computed in different batches. Not if they share an
// attention bias or rows of cross-attention, which each slice would convert or project anew.
bool CanBeSliced(const ComputeRequest& request);

// The slice of a request that can be sliced, which is a request for some of its sequences. Its
// `layout` says where their rows are in the tensors of the whole, which are not copied; tokens that
// are selected from other sequences are -1.
ComputeRequest SequencesOf(const ComputeRequest& request, int64_t first, int64_t count);

}  // namespace attendant::server
