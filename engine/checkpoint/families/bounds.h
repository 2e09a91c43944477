// Bounds on the sizes of a model, beyond which a config is refused (rule W13 in
// engine/checkpoint/README.md).
#pragma once

#include <cstdint>

#include "engine/checkpoint/families/config_reader.h"

namespace attendant {

inline constexpr IntegerRange kLayerRange = {1, 1024};
inline constexpr IntegerRange kHiddenSizeRange = {1, 65'536};
inline constexpr IntegerRange kFeedForwardRange = {1, int64_t{1} << 20};
inline constexpr IntegerRange kVocabularyRange = {1, int64_t{1} << 24};
inline constexpr IntegerRange kPositionRange = {1, int64_t{1} << 20};
inline constexpr IntegerRange kTokenTypeRange = {1, int64_t{1} << 16};
inline constexpr IntegerRange kPositionBucketRange = {4, 65'536};
inline constexpr float kHighestFeedForwardRatio = 64.0f;
inline constexpr float kHighestNormEpsilon = 1e-2f;
inline constexpr float kHighestScoreWidth = 65'536.0f;

}  // namespace attendant
