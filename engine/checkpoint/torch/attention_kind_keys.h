// The keys of attendant.json that say how attention works, except the projection names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant {

// The values of those keys that are not part of an AttentionBlockShape. Names of tensors are empty
// if there is no such tensor. With {layer} in a name each layer has its own tensor, counted from 0;
// otherwise all layers share it. Everything else in a name is literal.
struct AttentionKindKeys {
  std::optional<float> score_scale;
  std::string score;                     // for additive attention
  std::string key_mixing, value_mixing;  // for a Linformer
  // For collaborative heads: the factors [H, columns] by which each head multiplies the queries
  // that all heads share, as they share the keys; and [H, E], the contribution of a key to the
  // scores of a head for any query.
  std::string mixing, content_bias;

  bool collaborates() const { return !mixing.empty(); }
  // The number of columns that each head has in addition to the shared ones.
  int64_t own_columns() const { return content_bias.empty() ? 0 : 1; }
};

// Reads the optional keys attention, with score, or with key_mixing and value_mixing; window, with
// window_block, first_global, last_global, block_pairs and global_blocks; mixing, with
// content_bias; and score_scale. Sets the kind, window and pattern of `attention`.
AttentionKindKeys ReadAttentionKind(ConfigReader& config, AttentionBlockShape& attention);

// Returns the key width of each of `heads` collaborative heads that share the `columns` outputs of
// `source`. If that is too wide, adds a problem that names `source` and returns 1.
int64_t CollaborativeWidth(const AttentionKindKeys& read, int64_t heads, int64_t columns,
                           const std::string& source, WeightBinder& binder);

// Returns the number of query columns, and of key columns, that the file has for all heads
// together.
int64_t ColumnsInFile(const AttentionKindKeys& read, const LayerShape& layer);

// Sets the sizes and the scale of the kind of attention in a layer with known heads and widths. The
// default scale is 1 / sqrt(width of a head), for collaborative heads 1 / sqrt(their
// share of the columns), and 1 for kinds without a dot product or without softmax.
void DescribeAttentionKind(const AttentionKindKeys& read, LayerShape& layer, WeightBinder& binder);

// Lists the weights that the file has for the model. Collaborative heads have shared queries and
// keys there.
std::vector<WeightSpec> ListWeightsInFile(const AttentionKindKeys& read,
                                          const ModelDescription& description);

// Binds the weight and returns true if it is one that only some kinds of attention have; otherwise
// returns false.
bool BindAttentionKind(const AttentionKindKeys& read, const WeightSpec& spec, WeightBinder& binder);

// Returns a source of the model's weights, which it computes from those in the file.
std::unique_ptr<WeightSource> WithAttentionKind(const AttentionKindKeys& read,
                                                const ModelDescription& description,
                                                std::unique_ptr<WeightSource> weights);

}  // namespace attendant
