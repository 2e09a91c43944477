// AttentionExtra: weights that only some kinds of attention have.
#pragma once

#include <cstdint>

#include "engine/kernels/attention/attention.h"
#include "engine/layers/state/layer_run.h"
#include "engine/layers/state/weight_loader.h"
#include "engine/model/model_description.h"

namespace attendant {

// Immutable and thread-safe.
class AttentionExtra {
 public:
  virtual ~AttentionExtra() = default;

  // Adds these weights to the kernel's input.
  virtual void AddTo(AttentionInput& input, const LayerRun& run) const = 0;
};

}  // namespace attendant
