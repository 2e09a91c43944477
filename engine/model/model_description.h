// ModelDescription: everything that defines a model's forward pass, apart from its weights. A
// family of checkpoints is one way to fill it in (engine/checkpoint/families/families.cc); outside
// engine/checkpoint a family's name is only ever shown, never tested.
//
// Sizes count elements unless a comment says otherwise. CheckDescription (check_description.h) has
// the rules that a description must keep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/data_type.h"
#include "engine/model/attention_block_shape.h"
#include "engine/model/attention_pattern.h"
#include "engine/model/head_description.h"
#include "engine/model/layer_kinds.h"
#include "engine/model/rotary_shape.h"

namespace attendant {

// The arrangement of norms and residual connections in a layer.
enum class NormPlacement {
  kPost,  // x = norm(x + attention(x)); x = norm(x + feed_forward(x))
  kPre,   // x = x + attention(norm(x)); x = x + feed_forward(norm(x))
  // x = x + norm(attention(norm(x))); x = x + norm(feed_forward(norm(x))): four norms (Gemma 3)
  kSandwich,
  kNone,  // no residual and no norm: the layer is its attention block alone
};

const char* Name(NormPlacement placement);

// The ways in which the distance between two tokens enters attention.
enum class RelativePositions {
  kNone,
  kBuckets,       // a learned number for each head and bucket of distances is added to scores (T5)
  kAlibi,         // the head's fixed slope times the distance is subtracted from scores (ALiBi)
  kRotary,        // queries and keys are turned by angles that grow with their positions (RoPE)
  kDisentangled,  // queries are scored against learned keys of distances, and keys against learned
                  // queries of distances (DeBERTa)
};

const char* Name(RelativePositions kind);

// The relative positions of a model's attention; every field but `kind` belongs to certain kinds.
struct RelativePositionShape {
  RelativePositions kind = RelativePositions::kNone;
  // Buckets of the learned table: for both directions together, half of them each; in kDisentangled
  // for each direction, where 0 means one for each distance.
  int64_t buckets = 0;
  int64_t max_distance = 0;  // all distances from here on share the last bucket
  RotaryShape rotary = {};   // of kRotary
  // Fields of kDisentangled.
  bool scores_queries = false;      // queries are scored against the keys of distances
  bool scores_keys = false;         // keys are scored against the queries of distances
  bool shares_projections = false;  // the projections of tokens make these keys and queries too
  bool has_norm = false;            // on the learned table; its kind is that of the layers

  // The rows of the learned table of kDisentangled.
  int64_t position_rows() const { return 2 * (buckets > 0 ? buckets : max_distance); }

  // True if a number for each head and distance is added to scores.
  bool adds_to_scores() const {
    return kind == RelativePositions::kBuckets || kind == RelativePositions::kAlibi;
  }

  bool operator==(const RelativePositionShape&) const = default;
};

inline constexpr int64_t kMostExperts = 64;  // in a mixture

// A mixture of experts, which are feed-forward blocks: a router gives each expert a probability,
// softmax(R x), and the result is the sum of the results of the experts with the largest
// probabilities, times these, and a bias (Shazeer et al. 2017).
struct MixtureShape {
  int64_t experts = 0;    // 0: no mixture, every token goes through the same block
  int64_t per_token = 0;  // experts that a token goes through

  bool operator==(const MixtureShape&) const = default;
};

// The feed-forward blocks of a layer.
struct FeedForwardShape {
  int64_t width = 0;  // F; 0: no feed-forward block
  Activation activation = Activation::kGelu;
  bool has_gate = false;      // a block is W2 (activation(Wg x) * (W1 x))
  int64_t blocks = 1;         // one after the other, each with its norm
  MixtureShape mixture = {};  // in place of a block, if it has experts

  bool operator==(const FeedForwardShape&) const = default;
};

// The norms of a layer.
struct NormShape {
  // Whether norms come before the branches.
  bool are_first() const {
    return placement == NormPlacement::kPre || placement == NormPlacement::kSandwich;
  }

  NormPlacement placement = NormPlacement::kPost;
  NormKind kind = NormKind::kLayer;
  float epsilon = 0;
  float last_epsilon = 0;          // of the norm after the last feed-forward block; 0: epsilon
  bool has_attention_norm = true;  // false: no norm before the attention, where one would be

  bool operator==(const NormShape&) const = default;
};

// Two linear layers with norms around the blocks of a post-norm layer, which work at another width
// than E (MobileBERT).
struct BottleneckShape {
  int64_t width = 0;  // that the blocks work at; 0: E, without a bottleneck
  // Values are made from the layer's input, and queries and keys from a bottleneck of their own.
  bool values_from_outside = false;

  bool operator==(const BottleneckShape&) const = default;
};

// A convolution of a layer's input along the tokens of each sequence. Positions without a token
// count as zeros, as padding and gaps do. Its result is added to the layer's output, and a norm
// follows.
struct ConvolutionShape {
  int64_t taps = 0;    // width of the kernel in positions, centred on the token; odd; 0: none
  int64_t groups = 1;  // groups of columns; each is made of its own columns alone
  Activation activation = Activation::kTanh;

  bool operator==(const ConvolutionShape&) const = default;
};

// The parts of a layer that only a few models have.
struct LayerExtras {
  BottleneckShape bottleneck = {};
  ConvolutionShape convolution = {};       // only in a post-norm layer
  bool has_branch_scale = false;           // each branch is multiplied by a learned vector [E]
                                           // (LayerScale)
  bool has_second_attention_norm = false;  // post-norm: x and the norm of x + attention are added,
                                           // and a second norm follows

  bool operator==(const LayerExtras&) const = default;
};

// The shape of one encoder layer.
struct LayerShape {
  int64_t hidden_size = 0;  // E
  AttentionBlockShape attention = {};
  RelativePositionShape relative_positions = {};
  FeedForwardShape feed_forward = {};
  NormShape norms = {};
  LayerExtras extras = {};

  int64_t context_width() const { return attention.heads * attention.value_width; }  // C
  // The width that attention and feed-forward blocks work at.
  int64_t inner_width() const {
    return extras.bottleneck.width > 0 ? extras.bottleneck.width : hidden_size;
  }
  int64_t key_inputs() const {
    return attention.key_input_width > 0 ? attention.key_input_width : inner_width();
  }
  int64_t value_inputs() const {
    if (attention.value_input_width > 0) return attention.value_input_width;
    return extras.bottleneck.values_from_outside ? hidden_size : inner_width();
  }
  int64_t widest_input() const {
    return std::max({hidden_size, attention.key_input_width, attention.value_input_width});
  }
  // Whether the layer can attend to rows other than the queries' own (cross-attention). Relative
  // positions, windows and causal or mixed keys make sense within one sequence alone.
  bool takes_cross_kv() const {
    return relative_positions.kind == RelativePositions::kNone && attention.window == 0 &&
           !attention.causal && extras.bottleneck.width == 0 &&
           attention.kind != AttentionKind::kCausalLinear &&
           attention.kind != AttentionKind::kLinformer;
  }
  // Whether the layer can do nothing but cross-attention, because keys or values are made of rows
  // of another width than the queries.
  bool needs_cross_kv() const {
    return (attention.key_input_width > 0 && attention.key_input_width != hidden_size) ||
           (attention.value_input_width > 0 && attention.value_input_width != hidden_size);
  }
  int64_t projected_width() const {
    return attention.output_width > 0 ? attention.output_width : inner_width();
  }
  // The width of the attention's result, before any residual.
  int64_t attention_width() const {
    return attention.has_output_projection ? projected_width() : context_width();
  }
  // The width of the layer's result.
  int64_t layer_width() const {
    return extras.bottleneck.width > 0 ? hidden_size : attention_width();
  }
  // The columns of the queries, of the keys and of the values.
  int64_t query_columns() const { return attention.heads * attention.key_width; }
  int64_t key_columns() const { return attention.kv_heads() * attention.key_width; }
  int64_t value_columns() const { return attention.kv_heads() * attention.value_width; }
  // The first columns of keys and of values in the fused input projection, which begins with the
  // queries.
  int64_t key_column() const { return attention.keys_are_queries ? 0 : query_columns(); }
  int64_t value_column() const {
    return attention.values_are_keys ? key_column() : key_column() + key_columns();
  }
  bool operator==(const LayerShape&) const = default;
};

// The rule for the default position ids of kept tokens.
enum class PositionRule {
  kIndexFromFirstKept,  // index in the row minus that of the first kept token (BERT)
  // Whatever the mask keeps: padding_id() for a token of that id; for any other token
  // first_position + the number of tokens of other ids before it in the row (RoBERTa).
  kCountNotPadding,
};

// The embeddings of token ids: the sum of a word, a position and a token type, with an optional
// norm and an optional projection to E.
struct EmbeddingShape {
  int64_t width = 0;        // W, of the tables; projected to E if different
  int64_t vocabulary = 0;   // rows of the word table
  int64_t positions = 0;    // rows of the position table; 0: none
  int64_t token_types = 0;  // rows of the token type table; 0: none
  int64_t task_types = 0;   // rows of a table whose row 0 is added to every token; 0: none
  PositionRule position_rule = PositionRule::kIndexFromFirstKept;
  int64_t first_position = 0;  // position id of a row's first token
  bool has_norm = true;        // its kind is that of the layers
  float norm_epsilon = 0;
  bool always_projected = false;  // even if the tables are as wide as the hidden states
  bool norm_is_last = false;      // after the projection, at its width; false: before it
  // Only words are projected, and positions and types, from tables of width E, are added
  // afterwards. Needs norm_is_last.
  bool projects_words = false;
  // With projects_words: what is projected is the words of the next token, of the token itself and
  // of the one before, side by side, with zeros where there is none; false: the token's own word.
  bool has_neighbours = false;
  float word_scale = 1;                      // multiplies the rows of the word table
  DataType table_type = DataType::kFloat32;  // of all tables in memory; or float16, bfloat16
  // The id of words that are left out, while others are scaled (ESM's token dropout); -1: none.
  int64_t mask_id = -1;

  // The token id that kCountNotPadding does not count, which is also its position id.
  int64_t padding_id() const { return first_position - 1; }
  // The longest sequence that default position ids allow; 0: any length.
  int64_t longest_sequence() const { return positions == 0 ? 0 : positions - first_position; }
  bool projected(int64_t hidden_size) const { return always_projected || width != hidden_size; }
  int64_t norm_width(int64_t hidden_size) const { return norm_is_last ? hidden_size : width; }
  // The width of the tables of positions and types.
  int64_t added_width(int64_t hidden_size) const { return projects_words ? hidden_size : width; }
  // The number of columns that the projection takes.
  int64_t projected_from() const { return has_neighbours ? 3 * width : width; }
  bool operator==(const EmbeddingShape&) const = default;
};

// The patch embedding of a model that takes features, which are rows of patches or frames: a linear
// layer brings them to width E, prefix tokens are put before them, positions are added, and a norm
// follows. The prefix tokens are a class token, a distillation token and registers, in this order.
// The rows of the position table belong to the class and distillation tokens and then to the
// features; registers have no positions.
struct PatchEmbeddingShape {
  int64_t feature_width = 0;  // of the features, for the linear layer; 0: none, they are E wide
  bool has_class = false;
  bool has_distillation = false;
  int64_t registers = 0;
  int64_t positions = 0;     // rows of the position table; 0: none
  bool needs_every = false;  // positions are those of a grid, so each must have its feature
  bool has_norm = false;     // its kind is that of the layers
  int64_t image_size = 0, patch_size = 0;  // pixels on a side, if features may be pixels; else 0
  int64_t grid() const { return patch_size > 0 ? image_size / patch_size : 0; }  // on a side
  // The number of prefix tokens that have positions.
  int64_t prefix_positions() const { return (has_class ? 1 : 0) + (has_distillation ? 1 : 0); }
  // The number of all prefix tokens.
  int64_t prefix_tokens() const { return prefix_positions() + registers; }
  // The width of the features that a model of this hidden size takes.
  int64_t width(int64_t hidden_size) const {
    return feature_width > 0 ? feature_width : hidden_size;
  }
  // The largest number of features in a sequence; 0: any number.
  int64_t features() const { return positions == 0 ? 0 : positions - prefix_positions(); }
  bool operator==(const PatchEmbeddingShape&) const = default;
};

// A model without its weights. A weight set is the weights of a layer, which several layers may
// share (ALBERT).
struct ModelDescription {
  std::string family;  // only to be shown
  int64_t layers = 0;  // 0: embeddings alone, whose width `layer` states
  // The shape of all layers or, if they differ, the least one that each fits into: it has all
  // heads, the windows, the mixture and the convolution of the layers that have them, and the
  // largest widths.
  LayerShape layer;
  // One for each weight set; or empty: all are as `layer` is. They may differ in windows, rotary
  // positions, key widths, heads that are left, convolutions, feed-forward blocks, mixtures and the
  // norm before the attention.
  std::vector<LayerShape> layer_shapes;
  std::vector<int64_t> layer_map;  // [layers]: weight set of each layer, from 0 on without gaps;
                                   // or empty: each has its own
  std::optional<EmbeddingShape> embeddings;
  std::optional<PatchEmbeddingShape> patch_embedding;
  bool has_exit_norm = false;  // a norm after the last layer
  // Of the weights of all linear layers as they are read, if all of them are float16 or bfloat16
  // numbers; else float32. It only tells how much memory they will take.
  DataType linear_type = DataType::kFloat32;
  std::optional<PoolingDescription> pooling;
  std::optional<PoolingDescription> classifier;  // a head that scores classes
  // A head that scores classes of each token, or makes a vector of it.
  std::optional<PoolingDescription> token_head;
  // At most one of these two, in a model with embeddings: both make vectors over its vocabulary.
  std::optional<PoolingDescription> lexical_head;  // a number for each token
  std::optional<VocabularyHeadShape> vocabulary_head;
  std::optional<SimilarityShape> similarity;  // of a tower

  // The shape of the layers of a weight set, and of layer i.
  const LayerShape& layer_shape(int64_t set) const {
    return layer_shapes.empty() ? layer : layer_shapes[set];
  }
  const LayerShape& layer_at(int64_t i) const { return layer_shape(weight_set(i)); }
  // Gives each weight set a shape of its own. ShareShapes undoes this if all are as `layer` is.
  void SplitShapes();
  void ShareShapes();
  // Makes the same change to the shape of every layer.
  template <class Change>
  void ChangeShapes(const Change& change) {
    change(layer);
    for (LayerShape& shape : layer_shapes) change(shape);
  }
  // The heads that are linear layers, in the order in which loading reads them. They are part of
  // this description.
  std::vector<DenseHeadShape> dense_heads() const;
  // The width of the sparse vectors that the lexical or the vocabulary head makes; 0: it has none.
  int64_t sparse_width() const {
    return (vocabulary_head || lexical_head) && embeddings ? embeddings->vocabulary : 0;
  }
  // The number of heads that layer i has left.
  int64_t heads_at(int64_t i) const { return layer_at(i).attention.heads; }
  int64_t weight_sets() const;
  int64_t weight_set(int64_t i) const { return layer_map.empty() ? i : layer_map[i]; }
  bool operator==(const ModelDescription&) const = default;
};

}  // namespace attendant
