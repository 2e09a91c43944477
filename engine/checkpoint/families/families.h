// The published families of encoders: what their files call things, and the rules that their files
// do not state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/name_patterns.h"
#include "engine/checkpoint/files/sinusoids.h"
#include "engine/checkpoint/files/tensor_part.h"
#include "engine/model/model_description.h"

namespace attendant {

// The keys under which config.json states the sizes and options. Without keys the family does not
// have the thing, unless stated otherwise.
struct ConfigKeys {
  Keys hidden_size = {"hidden_size"};
  Keys heads = {"num_attention_heads"};
  Keys head_width = {};       // default: hidden size / heads
  Keys key_value_heads = {};  // key/value heads; default: as many as query heads
  Keys score_width = {};  // scores are scaled by 1 / its square root; default: Family::head_width
  Keys layers = {"num_hidden_layers"};
  Keys layer_groups = {};  // number of groups of layers that share their weights
  Keys feed_forward_width = {"intermediate_size"};
  Keys feed_forward_ratio = {};  // feed-forward width / hidden size, in place of the width
  Keys activation = {"hidden_act"};
  Keys gated_activation = {};  // replaces `activation`; if present, the block has a gate
  Keys same_activation = {};   // must say what `activation` does
  Keys same_gate = {};         // must say whether `activation` has a gate
  Keys swiglu = {};            // if true, the block is gated by SiLU and two thirds as wide
  // Of mixtures of experts, in layers 1, 1 + n, 1 + 2 n, … for the number n of experts_every.
  Keys experts = {}, experts_every = {}, experts_per_token = {};
  Keys norm_epsilon = {"layer_norm_eps"};        // default: Family::norm_epsilon
  Keys norm_first = {};                          // if true, norms come before the branches
  Keys vocabulary = {"vocab_size"};              // without keys the model takes no token ids
  Keys positions = {"max_position_embeddings"};  // size of the table
  Keys has_positions = {};                       // if false, there is no table of positions
  Keys token_types = {};                         // size of the table
  Keys has_task_types = {};                      // if true, there is a table of task types
  Keys task_types = {};                          // size of the table
  Keys leaves_out_masks = {};                    // if true, as EmbeddingShape::mask_id
  Keys has_embedding_norm = {};                  // default: Family::has_embedding_norm
  Keys embedding_width = {};                     // default: the hidden size
  Keys padding_id = {};                          // for kCountNotPadding: positions start after it
  Keys position_buckets = {};                    // for kBuckets
  Keys position_max_distance = {};               // for kBuckets
  Keys rotary_theta = {};                        // default: Family::rotary_theta
  Keys rotary_fraction = {};                     // rotated part of a head's width; default: 1
  // For layers with a window, if they have a rotation of their own.
  Keys local_rotary_theta = {};
  Keys bottleneck = {};         // width
  Keys attention_type = {};     // block-sparse or full
  Keys scales_words = {};       // whether word embeddings are scaled by sqrt(hidden size); default:
                                // Family::scales_words
  Keys norm_kind = {};          // default: Family::norm_kind
  Keys convolution = {};        // kernel size of the convolution next to layer 0
  Keys window = {};             // tokens to both sides together
  Keys global_every = {};       // if n, layers 0, n, 2 n, … have no window
  Keys causal_window = {};      // tokens that a query of a causal layer sees, with its own
  Keys has_causal_window = {};  // if false or absent, there is no such window
  Keys first_windowed = {};     // the first layer that has it; default: 28
  Keys last_of_period = {};     // if n, layers n - 1, 2 n - 1, … have no window; default: 6
  Keys classifier_pooling = {};  // "cls" or "mean"; if the default is late: "bos", "mean", "late"
  // Of all heads that have an activation; default: as Family says.
  Keys classifier_activation = {};
  Keys layer_kinds = {};         // a list with one entry per layer, in place of global_every
  Keys rotary_interleaved = {};  // default: column j is paired with j + width / 2
  Keys pooler_activation = {};   // default: Family::pooler_activation
  Keys pooler_width = {};        // default: the hidden size
  Keys pooler_end = {};          // as PoolingDescription::end_id; 2 stands for the largest id
  Keys patch_size = {};          // pixels on a side; the model takes pixels or their rows
};

struct FeedForwardKind {
  Activation activation;
  bool has_gate;
};

// A key of config.json that, if it is present, must have one value, because any other value
// computes something else.
struct FixedKey {
  const char* key;
  Json value;  // null if the key must be absent or null
  const char* reason = nullptr;
};

// One row of the table of families. Adding a family adds no code. The sizes and options below apply
// if config.json does not state them.
struct Family {
  std::string name;
  // The `model_type`s of config.json. Empty if only the architecture identifies the family, because
  // its configs have the model_type of another one.
  std::vector<std::string> model_types;
  // Stems of the `architectures` of config.json, before "Model", "EncoderModel" or "For…".
  std::vector<std::string> architectures;
  std::vector<std::string> prefixes;  // of all tensors' names; names without prefix are tried first
  std::vector<std::string> parts;     // beginnings of the names of the encoder's tensors
  std::vector<std::string> others = {};  // beginnings of names that do not belong to the encoder
  std::string pooler = {};               // a layer after pooling; empty: none
  Activation pooler_activation = Activation::kTanh;
  PoolingMode pooler_mode = PoolingMode::kFirstToken;
  bool pooler_has_block = false;     // followed by a feed-forward block like the layers'
  bool pools_without_layer = false;  // files without the layer are pooled all the same
  // Texts are pooled by the pooler, not by the mean of their tokens.
  bool texts_take_pooler = false;
  bool pads_texts = false;  // texts have as many tokens as there are positions, see TextPadding
  // A classification head pools by these modes, or as the config must say if there are none, and
  // applies this activation after its first linear layer. Without an activation here, the head uses
  // the activation of the encoder's layers.
  std::vector<PoolingMode> classifier_modes = {PoolingMode::kFirstToken};
  std::optional<Activation> classifier_activation = Activation::kTanh;
  ConfigKeys keys = {};
  std::vector<FixedKey> fixed_keys = {};
  // Config keys that are ignored because they do not change the computation, in addition to the
  // keys ignored for every family; see JudgeUnreadKeys.
  Keys harmless_keys = {};
  Keys position_embedding_types = {"absolute"};  // the only accepted values in a config
  std::string position_embedding_type = {};      // that counts if a config has none; empty: any
  // The type in modules.json of a Transformer that the authors wrote themselves and that computes
  // the same as sentence-transformers' own.
  std::string own_transformer = {};
  // Whether files must hold the biases of all linear layers and norms. Otherwise they must hold in
  // every layer those that they hold for layer 0.
  bool has_every_bias = true;
  float norm_epsilon = 1e-12f;
  Activation activation = Activation::kGelu;
  // The activation names in its configs; if empty, ActivationNames() without gates.
  std::vector<Named<FeedForwardKind>> feed_forward_kinds = {};
  bool feed_forward_is_two_thirds = false;  // as wide as the config says, to a multiple of 8
  NormPlacement norm_placement = NormPlacement::kPost;
  NormKind norm_kind = NormKind::kLayer;
  // The epsilon of the embedding norm and of the norm after the last feed-forward block of a layer,
  // whatever the config says. 0 if these norms have the epsilon of the others.
  float own_norm_epsilon = 0;
  bool has_own_head_width = false;  // heads need not make up the hidden size
  int64_t head_width = 0;           // 0: hidden size / heads
  bool is_causal = false;           // a config, or the operator, may say otherwise
  int64_t causal_window = 0;        // where the config has no such key
  bool halves_window = false;  // a window of w tokens reaches w / 2 to either side if not causal
  // Norms that every file of the family must have. Others are found in the file, over all heads.
  QueryKeyNorms query_key_norms = QueryKeyNorms::kNone;
  bool scales_scores = true;  // by 1 / sqrt(head width)
  bool has_branch_scale = false;
  bool has_first_attention_norm = true;
  bool patches_are_grid = false;  // positions form a grid of patches
  bool norms_patches = false;     // "front.norm" follows the positions, also in pre-norm models
  bool has_embedding_norm = true;
  bool scales_words = false;
  bool always_projects_embeddings = false;
  bool embedding_norm_is_last = false;  // the embedding norm comes after the projection
  bool projects_words =
      false;  // word embeddings, perhaps of neighbours, are projected by themselves
  PositionRule position_rule = PositionRule::kIndexFromFirstKept;
  int64_t first_position = 0;  // of a row's first token, for kIndexFromFirstKept
  // The table has that number of rows before those that the config counts.
  bool counts_from_first_position = false;
  Sinusoids sinusoids = Sinusoids::kNone;  // the table of positions of files that have none
  int64_t fewest_token_types = 1;
  int64_t padding_id = 0;  // the default, of keys.padding_id and for pads_texts
  RelativePositionShape relative_positions = {};
  float rotary_theta = 0;        // the default, for kRotary
  float local_rotary_theta = 0;  // the default for layers with a window
  // Whether configs may have rope_parameters and rope_scaling. With keys.local_rotary_theta,
  // rope_parameters has for each kind of layer an object with the theta and its scaling, and
  // rope_scaling, one such object, overrides both; otherwise each is one such object, and
  // rope_scaling replaces rope_parameters.
  bool scales_rotary = false;
  bool scales_local_rotary = true;  // what rope_scaling says is for layers with a window too
  NamePatterns names;
  // Names for a head that scores each token.
  NamePatterns token_head_names = {{"token_head.dense", "/classifier"},
                                   {"token_head.dense", "/qa_outputs"}};
  // Names for the MLM head; empty if it is not supported. Its activation is the encoder layers',
  // unless the library uses another one.
  NamePatterns vocabulary_head_names = {};
  std::optional<Activation> vocabulary_head_activation = {};
};

// The whole table. Thread-safe; the rows live as long as the process.
const std::vector<Family>& Families();

// The parts of the table: families that read text, the encoders of encoder-decoder models that read
// text, families that read long text, families of causal decoders, the towers of checkpoints with
// two, and families that take rows of patches or frames.
std::vector<Family> TextFamilies();
std::vector<Family> EncoderDecoderFamilies();
std::vector<Family> LongTextFamilies();
std::vector<Family> CausalFamilies();
std::vector<Family> TowerFamilies();
std::vector<Family> SignalFamilies();

// Returns the row of a family that is like another one, with the name, which is also the
// model_type.
Family Like(Family family, const std::string& name, const std::string& architecture);

// Returns all activations, each with a gate; the first is the default.
std::vector<Named<FeedForwardKind>> GatedKinds(const std::string& first = "gelu");

// Splits a text at spaces.
Keys Words(absl::string_view text);

// Finds a family by its model_type, or else by the first architecture that is known. Of several
// with the same model_type it is the one that has the position_embedding_type of the config, or
// else the first. Returns nullptr if neither is known.
const Family* FindFamily(const std::string& model_type,
                         const std::vector<std::string>& architectures,
                         const std::string& position_type = "");

// Returns why a model with this model_type and these architectures is not supported, or nullptr.
// The model_type may belong to a known family.
const char* ReasonToRefuse(const std::string& model_type,
                           const std::vector<std::string>& architectures);

// Returns the known model_type of which this one is a misspelling: of five letters or more, with
// one too many, missing, wrong, or swapped with its neighbour. Empty if there is none.
std::string MisspelledModelType(const std::string& model_type);

// Calls PlacesInFile (name_patterns.h) with all patterns of the family.
std::vector<TensorPart> PlacesInFile(const Family& family, const std::string& prefix,
                                     const std::string& canonical);

// The activations by their names in config.json.
absl::Span<const Named<Activation>> ActivationNames();

}  // namespace attendant
