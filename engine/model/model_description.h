// What a model is, without its weights: the axes of one forward function. A family of checkpoints
// is a way to fill this in (families.cc); nothing beyond engine/checkpoint asks for a family's
// name, except to show it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/attention_pattern.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

enum class NormPlacement {
  kPost,  // x = norm(x + attention(x)); x = norm(x + feed_forward(x))
  kPre,   // x = x + attention(norm(x)); x = x + feed_forward(norm(x))
  kNone,  // no residual and no norm: the layer is its attention block alone
};

const char* Name(NormPlacement placement);

// How attention knows how far apart two tokens are.
enum class RelativePositions {
  kNone,
  kBuckets,       // scores get a learned number for each head and bucket of distances (T5)
  kAlibi,         // scores lose a fixed slope of each head times the distance
  kRotary,        // queries and keys are turned by angles that grow with their positions (RoPE)
  kDisentangled,  // queries are scored against learned keys of distances, and keys against learned
                  // queries of distances (DeBERTa)
};

const char* Name(RelativePositions kind);

struct RelativePositionShape {
  RelativePositions kind = RelativePositions::kNone;
  int64_t buckets = 0;  // of the learned table, half of them for either direction; kDisentangled:
                        // for either direction, 0: one for each distance
  int64_t max_distance = 0;  // from here on all distances share the last bucket
  int64_t rotary_width = 0;  // columns of each head that turn
  RotaryPairs rotary_pairs = RotaryPairs::kHalves;
  float rotary_theta = 0;
  float rotary_stretch = 1;  // turns are as many times slower
  // kDisentangled:
  bool scores_queries = false;      // against keys of distances
  bool scores_keys = false;         // against queries of distances
  bool shares_projections = false;  // those keys and queries are made as those of tokens are
  bool has_norm = false;            // of the learned table, of the kind of the layers

  // kDisentangled: rows of the learned table.
  int64_t position_rows() const { return 2 * (buckets > 0 ? buckets : max_distance); }

  // True of those that are numbers for each distance.
  bool adds_to_scores() const {
    return kind == RelativePositions::kBuckets || kind == RelativePositions::kAlibi;
  }

  bool operator==(const RelativePositionShape&) const = default;
};

// A convolution along the tokens of each sequence, of what enters a layer: places that no token has
// are zeros, as if padding and holes were. What it gives is added to the layer's output and normed.
struct ConvolutionShape {
  int64_t taps = 0;    // places around the token's own that it looks at, an odd number; 0: none
  int64_t groups = 1;  // of columns, each made of those of its own
  Activation activation = Activation::kTanh;

  bool operator==(const ConvolutionShape&) const = default;
};

// One encoder layer; all layers of a model share it.
struct LayerShape {
  int64_t hidden_size = 0;                 // E
  int64_t heads = 0;                       // H
  std::vector<int64_t> head_numbers = {};  // [H] in the checkpoint, ascending; empty: 0, 1, …
  int64_t key_width = 0;                   // Dk, of one head
  int64_t value_width = 0;                 // Dv, of one head
  int64_t feed_forward_width = 0;          // F; 0: no feed-forward block
  AttentionKind attention = AttentionKind::kSoftmax;
  int64_t mixed_keys = 0;       // of kLinformer: rows that keys and values are mixed into
  int64_t mixed_positions = 0;  // of kLinformer: positions that are mixed: the longest sequence
  float score_scale = 0;
  NormPlacement norm_placement = NormPlacement::kPost;
  NormKind norm_kind = NormKind::kLayer;
  float norm_epsilon = 0;
  Activation activation = Activation::kGelu;
  bool has_input_projection = true;  // false: queries, keys and values are the input itself
  bool keys_are_queries = false;     // one projection makes both
  bool values_are_keys = false;
  bool has_output_projection = true;
  int64_t output_width = 0;        // of the output projection; 0: E
  bool has_gate = false;           // the feed-forward block is W2 (activation(Wg x) * (W1 x))
  bool has_attention_norm = true;  // false: pre-norm without the norm before the attention
  bool has_branch_scale = false;   // each branch is multiplied by a learned vector [E] (LayerScale)
  bool has_query_key_norms = false;        // of queries and of keys, each over all heads
  bool has_second_attention_norm = false;  // post-norm: x and the norm of x + attention are added
                                           // and normed again
  RelativePositionShape relative_positions = {};
  int64_t window = 0;             // keys further from the query than this are masked; 0: none is
  AttentionPattern pattern = {};  // what a window counts in, and who is beyond it
  // Of the rows that keys, and values, are made of, which then are never the queries' own; 0: E.
  int64_t key_input_width = 0;
  int64_t value_input_width = 0;
  // The width that a post-norm layer works at, between two linear layers and norms; 0: E.
  int64_t bottleneck = 0;
  bool values_from_outside = false;   // values come from before the bottleneck, queries and keys
                                      // from one of their own
  int64_t feed_forwards = 1;          // blocks behind each other, each with its norm
  ConvolutionShape convolution = {};  // beside a post-norm layer
  float last_norm_epsilon = 0;  // of the norm behind the last feed-forward block; 0: norm_epsilon

  int64_t context_width() const { return heads * value_width; }  // C
  // What attention and feed-forward blocks work at.
  int64_t inner_width() const { return bottleneck > 0 ? bottleneck : hidden_size; }
  int64_t key_inputs() const { return key_input_width > 0 ? key_input_width : inner_width(); }
  int64_t value_inputs() const {
    if (value_input_width > 0) return value_input_width;
    return values_from_outside ? hidden_size : inner_width();
  }
  int64_t widest_input() const {
    return std::max({hidden_size, key_input_width, value_input_width});
  }
  // Whether cross-attention is possible: relative positions and windows are of one sequence.
  bool takes_cross_kv() const {
    return relative_positions.kind == RelativePositions::kNone && window == 0 && bottleneck == 0 &&
           attention != AttentionKind::kCausalLinear && attention != AttentionKind::kLinformer;
  }
  // Whether only cross-attention is: keys and values are made of rows of other widths.
  bool needs_cross_kv() const {
    return (key_input_width > 0 && key_input_width != hidden_size) ||
           (value_input_width > 0 && value_input_width != hidden_size);
  }
  int64_t projected_width() const { return output_width > 0 ? output_width : inner_width(); }
  // Of what leaves the attention, before any residual.
  int64_t attention_width() const {
    return has_output_projection ? projected_width() : context_width();
  }
  // Of what leaves the layer.
  int64_t layer_width() const { return bottleneck > 0 ? hidden_size : attention_width(); }
  // Where keys and values begin in the columns of the fused input projection, whose first ones are
  // the queries.
  int64_t key_column() const { return keys_are_queries ? 0 : heads * key_width; }
  int64_t value_column() const {
    return values_are_keys ? key_column() : key_column() + heads * key_width;
  }
  bool operator==(const LayerShape&) const = default;
};

// How default position ids come about, for kept tokens.
enum class PositionRule {
  kIndexFromFirstKept,  // index in the row minus that of the first kept token (BERT)
  kCountKept,           // first_position + number of kept tokens before it (RoBERTa)
};

struct EmbeddingShape {
  int64_t width = 0;        // of the tables; projected to E if different
  int64_t vocabulary = 0;   // rows of the word table
  int64_t positions = 0;    // rows of the position table; 0: none
  int64_t token_types = 0;  // rows of the token type table; 0: none
  PositionRule position_rule = PositionRule::kIndexFromFirstKept;
  int64_t first_position = 0;  // position id of a row's first kept token
  bool has_norm = true;        // of the kind of the layers
  float norm_epsilon = 0;
  bool always_projected = false;  // even if the tables are as wide as the hidden states
  bool norm_is_last = false;      // behind the projection, of its width; else before it
  // Words alone are projected: that of the next token, its own and that of the one before, side by
  // side, zeros where there is none. Positions and types are added behind, in tables as wide as the
  // hidden states. With norm_is_last.
  bool projects_words = false;
  bool has_neighbours = false;  // of projects_words; else its own alone
  float word_scale = 1;         // of the rows of the word table

  // Of default positions; 0: any length.
  int64_t longest_sequence() const { return positions == 0 ? 0 : positions - first_position; }
  bool projected(int64_t hidden_size) const { return always_projected || width != hidden_size; }
  int64_t norm_width(int64_t hidden_size) const { return norm_is_last ? hidden_size : width; }
  // Of the tables of positions and types.
  int64_t added_width(int64_t hidden_size) const { return projects_words ? hidden_size : width; }
  // Of what is projected.
  int64_t projected_from() const { return has_neighbours ? 3 * width : width; }
  bool operator==(const EmbeddingShape&) const = default;
};

// What a model makes of the rows of patches or frames that it is given: a linear layer that brings
// them to its width; before and onto them a class and a distillation token, registers, a table of
// positions, a norm. Positions are of the two tokens,
// then of the rows; registers, between them, have none.
struct FrontShape {
  int64_t feature_width = 0;  // of the rows, for the linear layer; 0: none, they are E wide
  bool has_class = false;
  bool has_distillation = false;
  int64_t registers = 0;
  int64_t positions = 0;  // rows of the position table; 0: none
  bool needs_every =
      false;  // the positions are a grid's: rows for all of them, or their place is lost
  bool has_norm = false;  // of the kind of the layers

  int64_t placed_rows() const { return (has_class ? 1 : 0) + (has_distillation ? 1 : 0); }
  int64_t own_rows() const { return placed_rows() + registers; }
  // Of the rows that are given, to a model of this hidden size.
  int64_t width(int64_t hidden_size) const {
    return feature_width > 0 ? feature_width : hidden_size;
  }
  // Most rows that can be given; 0: any number.
  int64_t features() const { return positions == 0 ? 0 : positions - placed_rows(); }
  bool operator==(const FrontShape&) const = default;
};

enum class PoolingMode {
  kFirstToken,
  kMax,
  kMean,
  kMeanSqrtLen,
  kPositionWeightedMean,
  kLastToken,
  kFeatureMean  // mean of the rows behind those that the model puts before features
};

const char* Name(PoolingMode mode);

// After the modes: an optional linear layer with an activation and perhaps a norm, an optional
// second one behind it, then optional scaling to length 1.
struct PoolingDescription {
  std::vector<PoolingMode> modes;  // their vectors are concatenated, in this order
  int64_t dense_width = 0;         // outputs of the linear layer; 0: none
  Activation dense_activation = Activation::kIdentity;
  bool normalize = false;
  bool has_dense_norm = false;  // behind the activation, of the kind of the layers
  int64_t output_width = 0;     // outputs of the second linear layer; 0: none

  int64_t width(int64_t hidden_size) const {
    if (output_width > 0) return output_width;
    return dense_width > 0 ? dense_width : hidden_size * static_cast<int64_t>(modes.size());
  }
  bool operator==(const PoolingDescription&) const = default;
};

// What a layer may have of its own; all else it shares with the others.
struct LayerVariant {
  bool has_attention_norm = true;
  bool has_window = false;
  bool has_convolution = false;
  float rotary_theta = 0;
  std::vector<int64_t> pruned_heads = {};  // those of H that the layer does without, ascending

  bool operator==(const LayerVariant&) const = default;
};

struct ModelDescription {
  std::string family;  // for people
  int64_t layers = 0;
  LayerShape layer;
  std::vector<int64_t> layer_map;  // [layers]: weight set of each layer, from 0 on without gaps;
                                   // or empty: each has its own
  std::vector<LayerVariant> variants;  // of each weight set; or empty: all are as `layer` says
  std::optional<EmbeddingShape> embeddings;
  std::optional<FrontShape> front;
  bool has_exit_norm = false;  // a norm after the last layer
  std::optional<PoolingDescription> pooling;
  std::optional<PoolingDescription> classifier;  // a head that scores classes

  // The layers of a weight set, and layer i. Without some of its heads a layer is narrower than
  // `layer` says, nowhere wider.
  LayerShape layer_shape(int64_t set) const;
  LayerShape layer_at(int64_t i) const { return layer_shape(weight_set(i)); }
  int64_t heads_at(int64_t i) const;  // of layer i
  int64_t weight_sets() const;
  int64_t weight_set(int64_t i) const { return layer_map.empty() ? i : layer_map[i]; }
  bool operator==(const ModelDescription&) const = default;
};

}  // namespace attendant
