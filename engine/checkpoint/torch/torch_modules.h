// The state dict of a torch module, saved as safetensors, with attendant.json for what it lacks.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

inline constexpr char kTorchDescriptionFile[] = "attendant.json";

// attendant.json:
//   {"module": "nn.TransformerEncoder", "file": "encoder.safetensors", "num_heads": 8,
//    "norm_first": false, "activation": "relu", "layer_norm_eps": 1e-5}
// with module nn.MultiheadAttention (which has the first three fields only),
// nn.TransformerEncoderLayer or nn.TransformerEncoder (module "attention": attention_module.h)
// and, beside the latter two, "input_projection", "sinusoids", "output_projection" (module_ends.h),
// and what says how their attention works (attention_kind_keys.h): all layers work alike, with
// tensors of their own or shared ones. Heads that collaborate have in_proj_weight and in_proj_bias
// with as many rows for queries, and for keys, as they share columns.
// nn.MultiheadAttention may be made with kdim and vdim: it then attends to a memory alone.
// None has a default: a wrong guess would load and answer nonsense. layer_norm_eps also holds for
// the norm after the last layer. All else follows from the shapes. As InspectCheckpoint.
absl::Status OpenTorchModule(const std::string& folder, const CheckpointOptions& options,
                             Checkpoint& checkpoint);

}  // namespace attendant
