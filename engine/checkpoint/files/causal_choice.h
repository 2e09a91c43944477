// CausalChoice: the mask that the operator sets in place of what the checkpoint says.
#pragma once

namespace attendant {

enum class CausalChoice { kAsFiles, kCausal, kBidirectional };

}  // namespace attendant
