// The operator's choices for a checkpoint, such as its mask, its pooling, and which of its two
// models is served.
#pragma once

#include <optional>
#include <string>

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

struct CheckpointChoices {
  bool allow_nonfinite_weights = false;  // accept NaN and infinities (W12)
  std::string weights_sha256;            // lower-case hex; not checked if empty (W15)
  std::string adapter;  // a folder; see engine/checkpoint/adapter.h. Empty if there is none.
  std::string task;     // merges its adapter; see engine/checkpoint/task_adapters.h
  // Names the heads to leave out; see engine/checkpoint/pruning.h. Empty if there are none.
  std::string prune_file;
  // Replaces the modes of the checkpoint's own pooling.
  PoolingChoice pooling = PoolingChoice::kAsFiles;
  Tower tower = Tower::kOnly;  // of a checkpoint with two
  std::string route = {};      // of a Router in modules.json; empty: its default
  // Overrides the checkpoint's choice of causal attention.
  CausalChoice causal = CausalChoice::kAsFiles;

  bool operator==(const CheckpointChoices&) const = default;
};

}  // namespace attendant
