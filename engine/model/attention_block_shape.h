// AttentionBlockShape: the attention of a layer in a ModelDescription.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/attention_pattern.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// The projection of the keys and the values of a sequence to fewer rows: Wang et al. 2020
// (Linformer).
struct LinformerShape {
  int64_t keys = 0;       // k, the number of rows after the projection
  int64_t positions = 0;  // the largest number of positions in a sequence

  bool operator==(const LinformerShape&) const = default;
};

// The attention of a layer: its heads, its projections and the keys that each query sees.
struct AttentionBlockShape {
  AttentionKind kind = AttentionKind::kSoftmax;
  int64_t heads = 0;  // H
  // [H], the heads' numbers in the checkpoint, ascending. Empty if no heads are pruned.
  std::vector<int64_t> head_numbers = {};
  // K, the number of heads of keys and values, each of which H / K adjacent query heads share
  // (grouped-query attention). 0 means H.
  int64_t key_value_heads = 0;
  int64_t key_width = 0;             // Dk, the width of queries and keys of one head
  int64_t value_width = 0;           // Dv, the width of values of one head
  float score_scale = 0;             // 1 / sqrt(Dk) in most models
  bool has_input_projection = true;  // if false, queries, keys and values are the input itself
  bool keys_are_queries = false;     // queries and keys share a projection
  bool values_are_keys = false;      // keys and values share a projection
  QueryKeyNorms query_key_norms = QueryKeyNorms::kNone;
  bool has_output_projection = true;
  int64_t output_width = 0;  // columns of the output projection; 0 means E
  // The widths of the source rows of keys and values in layers that only support cross-attention. 0
  // means E.
  int64_t key_input_width = 0;
  int64_t value_input_width = 0;
  bool causal = false;            // keys after the query are masked
  int64_t window = 0;             // keys further than this from the query are masked; 0 if none are
  AttentionPattern pattern = {};  // the unit of the window, and keys that are visible beyond it
  LinformerShape linformer = {};  // only for kLinformer

  // The number of heads of keys and values.
  int64_t kv_heads() const { return key_value_heads > 0 ? key_value_heads : heads; }
  bool operator==(const AttentionBlockShape&) const = default;
};

}  // namespace attendant
