// AttentionBlockShape: the attention of a layer, as a ModelDescription has it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/attention_pattern.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// The mixing of keys and of values into fewer rows: Wang et al. 2020 (Linformer).
struct LinformerShape {
  int64_t keys = 0;       // k, the rows that keys and values are mixed into
  int64_t positions = 0;  // that a sequence may have

  bool operator==(const LinformerShape&) const = default;
};

// The attention of a layer: its heads, its projections and the keys that each query sees.
struct AttentionBlockShape {
  AttentionKind kind = AttentionKind::kSoftmax;
  int64_t heads = 0;                       // H
  std::vector<int64_t> head_numbers = {};  // [H], the heads' numbers in the checkpoint, ascending;
                                           // empty: 0, 1, …
  // K, heads of keys and values, each of which H / K neighbouring query heads read (grouped-query
  // attention); 0: H.
  int64_t key_value_heads = 0;
  int64_t key_width = 0;             // Dk, the width of queries and keys of one head
  int64_t value_width = 0;           // Dv, the width of values of one head
  float score_scale = 0;             // 1 / sqrt(Dk) in most models
  bool has_input_projection = true;  // false: queries, keys and values are the input itself
  bool keys_are_queries = false;     // one projection makes both
  bool values_are_keys = false;      // one projection makes both
  QueryKeyNorms query_key_norms = QueryKeyNorms::kNone;
  bool has_output_projection = true;
  int64_t output_width = 0;  // columns of the output projection; 0: E
  // The widths of the rows that keys and that values are made of, if these are never the queries'
  // own rows (cross-attention); 0: E.
  int64_t key_input_width = 0;
  int64_t value_input_width = 0;
  bool causal = false;            // keys after the query are masked
  int64_t window = 0;             // keys further from the query than this are masked; 0: no window
  AttentionPattern pattern = {};  // the unit of the window, and what is visible beyond it
  LinformerShape linformer = {};  // only of kLinformer

  // The heads of keys and values.
  int64_t kv_heads() const { return key_value_heads > 0 ? key_value_heads : heads; }
  bool operator==(const AttentionBlockShape&) const = default;
};

}  // namespace attendant
