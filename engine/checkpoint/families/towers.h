// Checkpoints with two towers, one for texts and one for images: the config of one of them, in the
// form that its family (TowerFamilies in families.h) is read from.
#pragma once

#include "engine/checkpoint/files/choices.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {

// Returns the config of a tower as if it were a model of its own, with the library's defaults
// filled in; and other configs as they are. Adds a problem if the checkpoint has no such tower, or
// if it has two and `tower` names none.
Json ConfigOfTower(const Json& config, Tower tower, Problems& problems);

}  // namespace attendant
