// What the published families of encoders call things, and the rules that no file of theirs states.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/tensor_part.h"
#include "engine/model/model_description.h"

namespace attendant {

// A weight's canonical name, and where it is in a file without the family's prefix. "{i}" is the
// weight set of the layer. The name of a linear layer or a norm stands for its ".weight" and its
// ".bias". Of several patterns for one weight the first that a file has is taken. What follows a
// "/" never has the prefix. "{j}" counts the feed-forward blocks before the last of a layer.
struct NamePattern {
  const char* canonical;
  const char* in_file;
  RowPart rows = {};
};

// Where config.json states the axes. No keys: the family has no such thing.
struct ConfigKeys {
  Keys hidden_size = {"hidden_size"};
  Keys heads = {"num_attention_heads"};
  Keys head_width = {};  // empty: the hidden size over the heads
  Keys layers = {"num_hidden_layers"};
  Keys layer_groups = {};  // layers of a group share their weights; empty: none do
  Keys feed_forward_width = {"intermediate_size"};
  Keys feed_forward_ratio = {};  // of the feed-forward width to the hidden size, in its place
  Keys activation = {"hidden_act"};
  Keys gated_activation = {};  // in its place, of a block that has a gate whatever the name
  Keys swiglu = {};            // true: gated by SiLU, two thirds as wide
  Keys norm_epsilon = {"layer_norm_eps"};        // empty: fixed, see below
  Keys norm_first = {};                          // true: norms before the branches, else behind
  Keys vocabulary = {"vocab_size"};              // empty: no token ids
  Keys positions = {"max_position_embeddings"};  // empty: no table
  Keys has_positions = {};                       // false: no table after all
  Keys token_types = {};                         // empty: no table
  Keys embedding_width = {};                     // empty, or absent in the file: the hidden size
  Keys padding_id = {};                          // kCountKept: positions start behind it
  Keys position_buckets = {};                    // kBuckets
  Keys position_max_distance = {};               // kBuckets; empty: fixed, see below
  Keys rotary_theta = {};                        // kRotary
  Keys rotary_fraction = {};                     // of a head's width; empty: all
  Keys local_rotary_theta = {};                  // of layers with a window; empty: the same
  Keys bottleneck = {};                          // width; empty: none
  Keys attention_type = {};                      // in blocks or full; empty: full
  Keys scales_words = {};                        // true: embeddings of words by sqrt(hidden size)
  Keys norm_kind = {};                           // empty: fixed, see below
  Keys convolution = {};                         // places, beside layer 0; empty: none
  Keys window = {};                              // both ways together; empty: no layer has one
  Keys global_every = {};                        // layers 0, n, 2 n, … have no window
  Keys classifier_pooling = {};                  // "cls" or "mean"
  Keys layer_kinds = {};                         // of each layer, in place of global_every
  Keys rotary_parameters = {};   // an object with the theta and how it is scaled; with a window one
                                 // for each kind of layer
  Keys rotary_interleaved = {};  // empty: halves
  Keys pooler_activation = {};   // empty: tanh
  Keys pooler_width = {};        // empty: the hidden size
};

struct FeedForwardKind {
  Activation activation;
  bool has_gate;
};

// Which of the biases that linear layers and norms can have a file must hold.
enum class Biases {
  kEvery,
  kAsInFile,  // those that it holds; all layers have those that layer 0 has
};

// A key of config.json that must have one value, because any other computes something else.
struct FixedKey {
  const char* key;
  Json value;  // null: absent or null
  const char* reason = nullptr;
};

// A family is one row of a table; adding one adds no code.
struct Family {
  std::string name;
  std::vector<std::string> model_types;  // of config.json; none: known by its architecture alone,
                                         // as its model_type is that of another family
  std::vector<std::string>
      architectures;  // what comes before "Model", "EncoderModel" or "For…" in its architectures
  std::vector<std::string> prefixes;  // of tensors; the bare names are tried first
  std::vector<std::string> parts;     // first names of the encoder's own tensors
  std::vector<std::string> others;  // first names of tensors that are there, but not the encoder's
  std::string pooler = {};          // of a layer on the first token; empty: none
  // Of a classification head: what it looks at, and what is behind its first linear layer.
  std::vector<PoolingMode> classifier_modes = {
      PoolingMode::kFirstToken};  // if the config does not say
  Activation classifier_activation = Activation::kTanh;
  bool classifier_acts_as_layers = false;  // with the activation of the layers in its place
  ConfigKeys keys = {};
  std::vector<FixedKey> fixed_keys = {};
  std::string position_embedding_type = "absolute";  // of the config, if it says so
  Biases biases = Biases::kEvery;
  float norm_epsilon = 1e-12f;                                  // if the config does not say
  Activation activation = Activation::kGelu;                    // if the config does not say
  std::vector<Named<FeedForwardKind>> feed_forward_kinds = {};  // empty: ActivationNames(), no gate
  NormPlacement norm_placement = NormPlacement::kPost;          // if the config does not say
  NormKind norm_kind = NormKind::kLayer;                        // if the config does not say
  // Of the norms of the embeddings and behind the last feed-forward block of a layer, whatever the
  // config says; 0: as it says.
  float own_norm_epsilon = 0;
  bool has_own_head_width = false;  // heads need not make up the hidden size
  bool scales_scores = true;        // by 1 / sqrt(head width)
  bool has_branch_scale = false;
  bool has_first_attention_norm = true;
  bool patches_are_grid = false;  // positions are those of a grid of patches
  bool has_embedding_norm = true;
  bool always_projects_embeddings = false;
  bool embedding_norm_is_last = false;  // behind the projection
  bool projects_words = false;          // alone, perhaps with their neighbours
  PositionRule position_rule = PositionRule::kIndexFromFirstKept;
  int64_t fewest_token_types = 1;
  int64_t padding_id = 0;                         // if the config does not say
  RelativePositionShape relative_positions = {};  // sizes if the config does not say
  std::vector<NamePattern> names;
};

const std::vector<Family>& Families();

// The rows of the table: families that read text, and those that take rows of patches or frames.
std::vector<Family> TextFamilies();
std::vector<Family> LongTextFamilies();
std::vector<Family> SignalFamilies();

// By model_type, or else by the first architecture that is known; nullptr: neither.
const Family* FindFamily(const std::string& model_type,
                         const std::vector<std::string>& architectures);

// Why a model that calls itself so, perhaps with the model_type of a known one, is not computed
// here; nullptr: no reason is known.
const char* ReasonToRefuse(const std::string& model_type,
                           const std::vector<std::string>& architectures);

// The model type closest in spelling, for a message.
std::string NearestModelType(const std::string& model_type);

// Where the tensor `canonical` may be in a file, the usual place first, behind `prefix`. Empty: not
// of this family.
std::vector<TensorPart> PlacesInFile(const Family& family, const std::string& prefix,
                                     const std::string& canonical);

// Activations by the names of config.json.
absl::Span<const Named<Activation>> ActivationNames();

}  // namespace attendant
