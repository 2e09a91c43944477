// Tower: which of the two models of one checkpoint is served.
#pragma once

#include "engine/base/names.h"

namespace attendant {

enum class Tower { kOnly, kText, kVision };

// The names of the towers but kOnly.
inline constexpr Named<Tower> kTowerNames[] = {{"text", Tower::kText}, {"vision", Tower::kVision}};

}  // namespace attendant
