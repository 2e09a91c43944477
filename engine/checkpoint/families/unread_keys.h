// The keys of config.json that no reader has asked for.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {

// Judges the keys that `config` has and that no call has named so far. One that the family knows to
// be harmless is passed over: it belongs to training, to a decoder, to tokens, to a part of the
// model that is outside the server, or to a choice between implementations of the same formula. One
// whose name says that it computes what some encoders have (rotary positions, ALiBi, experts) is a
// problem. All others are named in a warning: published configs have keys of their authors' own
// tools, which the library ignores too.
void JudgeUnreadKeys(const Family& family, const ConfigReader& config, Problems& problems,
                     std::vector<std::string>& warnings);

}  // namespace attendant
