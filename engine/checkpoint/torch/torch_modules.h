// Checkpoints that are state dicts of torch modules, saved as safetensors, with attendant.json for
// everything that a state dict does not say.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

inline constexpr char kTorchDescriptionFile[] = "attendant.json";

// Opens such a folder; errors, and the meaning of `checkpoint` after an error, are those of
// InspectCheckpoint. attendant.json looks like this:
//   {"module": "nn.TransformerEncoder", "file": "encoder.safetensors", "num_heads": 8,
//    "norm_first": false, "activation": "relu", "layer_norm_eps": 1e-5}
// The module is nn.MultiheadAttention (which has the first three fields only),
// nn.TransformerEncoderLayer, nn.TransformerEncoder, or "attention" (attention_module.h). No field
// has a default, because a model with a wrong guess would load and give nonsense. layer_norm_eps
// also applies to the norm after the last layer. Everything else follows from the shapes.
//
// An nn.MultiheadAttention may have been made with kdim and vdim; it can then only attend to a
// memory.
//
// An nn.TransformerEncoderLayer or nn.TransformerEncoder may also have "input_projection",
// "sinusoids" and "output_projection" (module_ends.h), and keys that say how attention works
// (attention_kind_keys.h). The latter apply to all layers, which have tensors of their own or share
// them. For collaborative heads, in_proj_weight and in_proj_bias have one row for queries and one
// row for keys per shared column.
absl::Status OpenTorchModule(const std::string& folder, const CheckpointOptions& options,
                             Checkpoint& checkpoint);

}  // namespace attendant
