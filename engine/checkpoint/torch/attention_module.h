// Attention with custom tensor names, for any file with query, key and value projections.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// Opens the checkpoint in `folder`; errors, and the meaning of `checkpoint` after an error, are
// those of InspectCheckpoint. `json` is the folder's attendant.json:
//   {"module": "attention", "file": "heads.safetensors", "num_heads": 2, "weight_layout": "out_in",
//    "query": "heads.{head}.Q", "key": "heads.{head}.K", "value": "heads.{head}.V",
//    "output": "linear", "score_scale": 0.7071}
//
// `query`, `key`, `value` and `output` name linear layers: the tensors NAME.weight, or NAME itself,
// and NAME.bias if there is one. With {head} in the name of one of the first three, each head has
// tensors of its own, counted from 0. If `key` has the same name as `query`, or `value` the same as
// `key`, the two share one projection. Without `output` the result is the context.
//
// `weight_layout` is "out_in", as torch's linear layers have it, or "in_out" for weights that stand
// to the right of the input. The file does not say which, and a square matrix fits both. The keys
// that say how queries, keys and values make a context, among them score_scale, are described in
// attention_kind_keys.h.
//
// `key` and `value` may take inputs of other widths than `query`; the layer can then only attend to
// a memory.
//
// Without `query`, `key` and `value`, but with hidden_size, all three are the input itself, and
// `file` is needed for `output` only. Everything else follows from the shapes.
absl::Status OpenAttentionModule(const std::string& folder, const Json& json,
                                 const CheckpointOptions& options, Checkpoint& checkpoint);

}  // namespace attendant
