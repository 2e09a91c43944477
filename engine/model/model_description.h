// ModelDescription: everything that defines a model's forward pass, except its weights. The
// checkpoint families (engine/checkpoint/families/families.cc) fill it in from their configuration
// files. Code outside engine/checkpoint may show a family's name but never depends on it.
//
// Sizes are in elements unless a comment says otherwise. CheckDescription (check_description.h)
// checks that a description is valid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/data_type.h"
#include "engine/base/names.h"
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
  kNone,  // no residual and no norm: the layer is only its attention
};

inline constexpr Named<NormPlacement> kNormPlacementNames[] = {
    {"post", NormPlacement::kPost},
    {"pre", NormPlacement::kPre},
    {"sandwich", NormPlacement::kSandwich},
    {"none", NormPlacement::kNone}};

constexpr const char* Name(NormPlacement placement) {
  return NameIn(kNormPlacementNames, placement);
}

// The dependence of attention on the relative position of two tokens.
enum class RelativePositions {
  kNone,
  kBuckets,       // adds a learned bias for each head and bucket of distances to scores (T5)
  kAlibi,         // subtracts the distance times a fixed slope of the head from scores (ALiBi)
  kRotary,        // rotates queries and keys by angles proportional to their positions (RoPE)
  kDisentangled,  // scores queries against learned keys of relative positions, and keys against
                  // learned queries of relative positions (DeBERTa)
};

inline constexpr Named<RelativePositions> kRelativePositionsNames[] = {
    {"none", RelativePositions::kNone},
    {"buckets", RelativePositions::kBuckets},
    {"alibi", RelativePositions::kAlibi},
    {"rotary", RelativePositions::kRotary},
    {"disentangled", RelativePositions::kDisentangled}};

constexpr const char* Name(RelativePositions kind) { return NameIn(kRelativePositionsNames, kind); }

// The relative positions of a model's attention. Most fields apply only to some kinds.
struct RelativePositionShape {
  RelativePositions kind = RelativePositions::kNone;
  // kBuckets: the number of buckets, half of them for each direction. kDisentangled: the number of
  // buckets per direction, or 0 if each distance has its own row.
  int64_t buckets = 0;
  int64_t max_distance = 0;  // larger distances share the last bucket
  RotaryShape rotary = {};   // only for kRotary
  // Only for kDisentangled:
  bool scores_queries = false;      // queries are scored against keys of relative positions
  bool scores_keys = false;         // keys are scored against queries of relative positions
  bool shares_projections = false;  // the token projections also project relative positions
  bool has_norm = false;            // applied to the learned table; of the layers' NormKind

  // The rows of the learned table of kDisentangled, or 0 for other kinds.
  int64_t position_rows() const {
    if (kind != RelativePositions::kDisentangled) return 0;
    return 2 * (buckets > 0 ? buckets : max_distance);
  }

  // Whether a bias for each head and distance is added to scores.
  bool adds_to_scores() const {
    return kind == RelativePositions::kBuckets || kind == RelativePositions::kAlibi;
  }

  bool operator==(const RelativePositionShape&) const = default;
};

inline constexpr int64_t kMostExperts = 64;  // in a mixture

// A mixture of experts, each of which is a feed-forward block. A router gives each expert a
// probability, softmax(R x). The output is a bias plus the sum of p_e expert_e(x) over the experts
// with the largest probabilities (Shazeer et al. 2017).
struct MixtureShape {
  int64_t experts = 0;    // if 0, all tokens pass through the same block
  int64_t per_token = 0;  // experts that a token passes through

  bool operator==(const MixtureShape&) const = default;
};

// The feed-forward blocks of a layer.
struct FeedForwardShape {
  int64_t width = 0;  // F; 0 if the layer has no feed-forward block
  Activation activation = Activation::kGelu;
  bool has_gate = false;      // a block computes W2 (activation(Wg x) * (W1 x))
  int64_t blocks = 1;         // run one after the other, each with its own norm
  MixtureShape mixture = {};  // replaces the block if it has experts

  bool operator==(const FeedForwardShape&) const = default;
};

// The norms of a layer.
struct NormShape {
  // Whether the norms precede the branches.
  bool are_first() const {
    return placement == NormPlacement::kPre || placement == NormPlacement::kSandwich;
  }

  NormPlacement placement = NormPlacement::kPost;
  NormKind kind = NormKind::kLayer;
  float epsilon = 0;
  float last_epsilon = 0;          // of the norm after the last feed-forward block; `epsilon` if 0
  bool has_attention_norm = true;  // can be false only in a pre-norm layer

  bool operator==(const NormShape&) const = default;
};

// Linear layers and norms around the blocks of a post-norm layer, so that the blocks have an inner
// width other than E (MobileBERT).
struct BottleneckShape {
  int64_t width = 0;  // the inner width; 0 if the layer has no bottleneck
  // Values are projected from the layer's input, and queries and keys from a separate bottleneck.
  bool values_from_outside = false;

  bool operator==(const BottleneckShape&) const = default;
};

// A convolution of a layer's input along the tokens of each sequence. Positions without a token,
// such as padding and gaps, are zero. The result is added to the layer's output, and a norm
// follows.
struct ConvolutionShape {
  int64_t taps = 0;  // kernel size in positions, centered on the token; odd, or 0 if there is none
  int64_t groups = 1;  // columns are split into groups that do not mix
  Activation activation = Activation::kTanh;

  bool operator==(const ConvolutionShape&) const = default;
};

// Parts of a layer that only a few models have.
struct LayerExtras {
  BottleneckShape bottleneck = {};
  ConvolutionShape convolution = {};       // only in a post-norm layer
  bool has_branch_scale = false;           // each branch is multiplied by a learned vector [E]
                                           // (LayerScale)
  bool has_second_attention_norm = false;  // post-norm: norm2(x + norm(x + attention(x)))

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
  // The width of the input and output of attention and feed-forward blocks.
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
  // Whether the layer supports cross-attention, in which keys and values come from other rows than
  // queries. Relative positions, windows, and causal or mixed keys are defined only within one
  // sequence.
  bool takes_cross_kv() const {
    return relative_positions.kind == RelativePositions::kNone && attention.window == 0 &&
           !attention.causal && extras.bottleneck.width == 0 &&
           attention.kind != AttentionKind::kCausalLinear &&
           attention.kind != AttentionKind::kLinformer;
  }
  // Whether the layer supports only cross-attention, because keys or values are projected from rows
  // of another width than queries.
  bool needs_cross_kv() const {
    return (attention.key_input_width > 0 && attention.key_input_width != hidden_size) ||
           (attention.value_input_width > 0 && attention.value_input_width != hidden_size);
  }
  int64_t projected_width() const {
    return attention.output_width > 0 ? attention.output_width : inner_width();
  }
  // The width of the attention's output, before any residual.
  int64_t attention_width() const {
    return attention.has_output_projection ? projected_width() : context_width();
  }
  // The width of the layer's output.
  int64_t layer_width() const {
    return extras.bottleneck.width > 0 ? hidden_size : attention_width();
  }
  // The numbers of columns of all queries, keys and values.
  int64_t query_columns() const { return attention.heads * attention.key_width; }
  int64_t key_columns() const { return attention.kv_heads() * attention.key_width; }
  int64_t value_columns() const { return attention.kv_heads() * attention.value_width; }
  // The first columns of keys and values in the fused input projection. Queries begin at column 0.
  int64_t key_column() const { return attention.keys_are_queries ? 0 : query_columns(); }
  int64_t value_column() const {
    return attention.values_are_keys ? key_column() : key_column() + key_columns();
  }
  bool operator==(const LayerShape&) const = default;
};

// The rule for the default position ids of kept tokens.
enum class PositionRule {
  kIndexFromFirstKept,  // index in the row minus the index of the first kept token (BERT)
  // Independent of the mask: padding_id() for a token of that id; for any other token,
  // first_position + the number of earlier tokens in the row with an id other than padding_id()
  // (RoBERTa).
  kCountNotPadding,
};

// Token embeddings: the sum of word, position and token type embeddings, with an optional norm and
// an optional projection to E.
struct EmbeddingShape {
  int64_t width = 0;        // W, the width of the tables; projected to E if different
  int64_t vocabulary = 0;   // rows of the word table
  int64_t positions = 0;    // rows of the position table; 0 if there is none
  int64_t token_types = 0;  // rows of the token type table; 0 if there is none
  int64_t task_types = 0;   // rows of a table whose row 0 is added to every token; 0 if none
  PositionRule position_rule = PositionRule::kIndexFromFirstKept;
  int64_t first_position = 0;  // position id of a row's first token
  bool has_norm = true;        // of the layers' NormKind
  float norm_epsilon = 0;
  bool always_projected = false;  // even if W = E
  bool norm_is_last = false;      // whether the norm follows the projection, at its width
  // Only word embeddings are projected. Position and token type embeddings have width E and are
  // added afterwards. Requires norm_is_last.
  bool projects_words = false;
  // The projection reads the word embeddings of the next token, the token itself and the previous
  // token, side by side, with zeros beyond the sequence. Requires projects_words.
  bool has_neighbours = false;
  float word_scale = 1;                      // multiplies the rows of the word table
  DataType table_type = DataType::kFloat32;  // of all tables in memory; also float16, bfloat16
  // Embeddings of this token id are zeroed, and the others are scaled (ESM's token dropout). -1 if
  // there is no such id.
  int64_t mask_id = -1;

  // The token id that kCountNotPadding does not count. It is also the position id of such tokens.
  int64_t padding_id() const { return first_position - 1; }
  // The longest sequence that default position ids allow, or 0 for any length.
  int64_t longest_sequence() const { return positions == 0 ? 0 : positions - first_position; }
  bool projected(int64_t hidden_size) const { return always_projected || width != hidden_size; }
  int64_t norm_width(int64_t hidden_size) const { return norm_is_last ? hidden_size : width; }
  // The width of the position and token type tables.
  int64_t added_width(int64_t hidden_size) const { return projects_words ? hidden_size : width; }
  // The number of input columns of the projection.
  int64_t projected_from() const { return has_neighbours ? 3 * width : width; }
  bool operator==(const EmbeddingShape&) const = default;
};

// The patch embedding of a model whose inputs are features, such as image patches or audio frames.
// It projects features to width E, writes prefix tokens before them, adds position embeddings and
// applies a norm. The prefix tokens are a class token, a distillation token and registers, in this
// order. The position table has the rows of the class and distillation tokens first, then of the
// features. Registers have no positions.
struct PatchEmbeddingShape {
  int64_t feature_width = 0;  // of the features; 0 if there is no projection and features have E
  bool has_class = false;
  bool has_distillation = false;
  int64_t registers = 0;
  int64_t positions = 0;     // rows of the position table; 0 if there is none
  bool needs_every = false;  // the positions form a grid, and each must have its feature
  bool has_norm = false;     // of the layers' NormKind
  // Sides of the image and of a patch in pixels; 0 if features cannot be pixels.
  int64_t image_size = 0, patch_size = 0;
  int64_t grid() const { return patch_size > 0 ? image_size / patch_size : 0; }  // patches per side
  // The number of prefix tokens that have positions.
  int64_t prefix_positions() const { return (has_class ? 1 : 0) + (has_distillation ? 1 : 0); }
  // The number of all prefix tokens.
  int64_t prefix_tokens() const { return prefix_positions() + registers; }
  // The width of the features that a model of this hidden size takes.
  int64_t width(int64_t hidden_size) const {
    return feature_width > 0 ? feature_width : hidden_size;
  }
  // The largest number of features in a sequence, or 0 for any number.
  int64_t features() const { return positions == 0 ? 0 : positions - prefix_positions(); }
  bool operator==(const PatchEmbeddingShape&) const = default;
};

// A model without its weights. A weight set is the weights of one layer; several layers may share
// it (ALBERT).
struct ModelDescription {
  std::string family;  // for display only
  int64_t layers = 0;  // 0 if the model has only embeddings, of width layer.hidden_size
  // The shape of all layers. If layers differ, the common shape that each fits into: it has all
  // heads, the largest widths, and the windows, mixtures and convolutions of the layers that have
  // them.
  LayerShape layer;
  // One shape per weight set, or empty if all have the shape `layer`. They may differ in windows,
  // rotary positions, key widths, pruned heads, convolutions, feed-forward blocks, mixtures and the
  // norm before attention.
  std::vector<LayerShape> layer_shapes;
  // [layers], the weight set of each layer, numbered from 0 without gaps. If empty, each layer has
  // its own.
  std::vector<int64_t> layer_map;
  std::optional<EmbeddingShape> embeddings;
  std::optional<PatchEmbeddingShape> patch_embedding;
  bool has_exit_norm = false;  // whether a final norm follows the last layer
  // float16 or bfloat16 if the weights of all linear layers are stored in that type, otherwise
  // float32. Used only to predict memory.
  DataType linear_type = DataType::kFloat32;
  std::optional<PoolingDescription> pooling;
  std::optional<PoolingDescription> classifier;  // scores classes of a sequence
  std::optional<PoolingDescription> token_head;  // scores classes of each token, or projects it
  // Both compute sparse vectors over the vocabulary. A model has at most one, and embeddings.
  std::optional<PoolingDescription> lexical_head;  // one weight per token
  std::optional<VocabularyHeadShape> vocabulary_head;
  std::optional<SimilarityShape> similarity;  // of a checkpoint with two towers

  // The shape of a weight set, and of layer i.
  const LayerShape& layer_shape(int64_t set) const {
    return layer_shapes.empty() ? layer : layer_shapes[set];
  }
  const LayerShape& layer_at(int64_t i) const { return layer_shape(weight_set(i)); }
  // Gives each weight set its own copy of the shape. ShareShapes undoes this if all are equal to
  // `layer`.
  void SplitShapes();
  void ShareShapes();
  // Applies the same change to the shape of every layer.
  template <class Change>
  void ChangeShapes(const Change& change) {
    change(layer);
    for (LayerShape& shape : layer_shapes) change(shape);
  }
  // The dense heads of the model, in the order in which loading reads them. The result points into
  // this description.
  std::vector<DenseHeadShape> dense_heads() const;
  // The width of the sparse vectors of the lexical or MLM head, or 0 without such a head.
  int64_t sparse_width() const {
    return (vocabulary_head || lexical_head) && embeddings ? embeddings->vocabulary : 0;
  }
  // The number of heads of layer i, without pruned ones.
  int64_t heads_at(int64_t i) const { return layer_at(i).attention.heads; }
  int64_t weight_sets() const;
  int64_t weight_set(int64_t i) const { return layer_map.empty() ? i : layer_map[i]; }
  bool operator==(const ModelDescription&) const = default;
};

}  // namespace attendant
