// The operator's choices, which override a checkpoint: its mask, its pooling, and which of its two
// models is served.
#pragma once

#include <optional>

#include "engine/base/names.h"
#include "engine/model/model_description.h"

namespace attendant {

enum class CausalChoice { kAsFiles, kCausal, kBidirectional };

enum class Tower { kOnly, kText, kVision };

// The names of the towers except kOnly.
inline constexpr Named<Tower> kTowerNames[] = {{"text", Tower::kText}, {"vision", Tower::kVision}};

enum class PoolingChoice { kAsFiles, kPooler, kFirstToken, kLastToken, kMean, kMax, kYesNo };

// The names of the choices except kAsFiles.
inline constexpr Named<PoolingChoice> kPoolingChoiceNames[] = {
    {"mean", PoolingChoice::kMean},
    {"first_token", PoolingChoice::kFirstToken},
    {"last_token", PoolingChoice::kLastToken},
    {"max", PoolingChoice::kMax},
    {"pooler", PoolingChoice::kPooler},
    {"yes_no", PoolingChoice::kYesNo}};

// Returns the mode with the name of a choice, or nothing for the checkpoint's own pooling, its
// pooler and kYesNo.
inline std::optional<PoolingMode> ModeOf(PoolingChoice choice) {
  return ValueIn(kPoolingModeNames, NameIn(kPoolingChoiceNames, choice));
}

}  // namespace attendant
