// Attention whose weights have names of their own: whatever holds queries, keys and values.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// `json` is the folder's attendant.json:
//   {"module": "attention", "file": "heads.safetensors", "num_heads": 2, "weight_layout": "out_in",
//    "query": "heads.{head}.Q", "key": "heads.{head}.K", "value": "heads.{head}.V",
//    "output": "linear", "score_scale": 0.7071}
//
// `query`, `key`, `value` and `output` name linear layers: the tensors NAME.weight, or NAME itself,
// and NAME.bias if there is one. With {head} in the name of one of the first three, each head has
// tensors of its own, from 0 on. The same name for `key` as for `query`, or for `value` as for
// `key`, makes one projection of both. Without `output` the answer ends with the context.
//
// weight_layout: "out_in" as torch's linear layers have it, or "in_out" for weights that stand to
// the right of the input; no file says which, and a square matrix fits both. How queries, keys and
// values make a context, and score_scale: attention_kind_keys.h.
//
// `key` and `value` may take inputs of other widths than `query`: the layer then attends to a
// memory alone.
//
// Without `query`, `key` and `value`, but with hidden_size, all three are the input itself, and
// `file` is needed for `output` only. All else follows from the shapes. As InspectCheckpoint.
absl::Status OpenAttentionModule(const std::string& folder, const Json& json,
                                 const CheckpointOptions& options, Checkpoint& checkpoint);

}  // namespace attendant
