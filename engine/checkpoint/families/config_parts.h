// The readers of parts of config.json, which ReadModelConfig calls. They add a problem for each key
// that is not as expected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/choices.h"
#include "engine/model/model_description.h"
#include "engine/model/rotary_shape.h"

namespace attendant {

// The names of layers with and without a window in newer configs.
inline constexpr char kLocalLayer[] = "sliding_attention";
inline constexpr char kGlobalLayer[] = "full_attention";

// Returns the config of one tower of a checkpoint with two, one for texts and one for images, as if
// it were a model of its own, with the library's defaults filled in; and other configs as they are.
// Adds a problem if the checkpoint has no such tower, or if it has two and `tower` names none.
Json ConfigOfTower(const Json& config, Tower tower, Problems& problems);

// Reads the rotation in layers with a window, if `is_local`, or in those without one: which columns
// of a head are turned, by the base, and how the angles are scaled for long sequences. Both are the
// same in families without Family::keys.local_rotary_theta.
RotaryShape ReadRotary(const Family& family, bool is_local, int64_t head_width,
                       ConfigReader& config);

// Reads the keys of disentangled attention. The kind is kNone if the config has no relative
// attention; the rest still says which products the scores would be the sum of.
RelativePositionShape ReadDisentangled(ConfigReader& config);

// Sets the bottleneck of a layer, if the config has one, and the number of its feed-forward blocks.
void ReadBottleneck(ConfigReader& config, LayerShape& layer);

// Gives layers a mixture of experts, if the config has experts.
void ReadMixture(const ConfigKeys& keys, ConfigReader& config, ModelDescription& model);

// Returns which layers have a window: newer configs list all layers, older ones give a period or
// the first one.
std::vector<bool> ReadWindowed(const ConfigKeys& keys, int64_t layers, ConfigReader& config);

// Leaves the window of the common shape to the windowed layers, and gives those the rotation of
// layers with a window.
void SetWindowed(const std::vector<bool>& windowed, const Family& family, ConfigReader& config,
                 ModelDescription& model);

// Sets the window and pattern of block-sparse attention, if attention_type asks for it.
void ReadBlockPattern(ConfigReader& config, LayerShape& layer);

// Reads the convolution next to a layer. The layer's hidden size must be set. `taps` are the keys
// of its kernel size. Without a convolution the shape has 0 taps.
ConvolutionShape ReadConvolution(const Keys& taps, const LayerShape& layer, ConfigReader& config);

// Sets the number of key/value heads, and whether attention is causal, with its window in the
// layers that have one. Called after everything else of the layers is read.
void ReadCausalAttention(const Family& family, ConfigReader& config, ModelDescription& model);

// Makes the model causal or bidirectional as the operator says. INVALID_ARGUMENT if the family is
// never causal; the message begins with `folder`.
absl::Status ChooseCausality(const std::string& folder, CausalChoice choice, const Family& family,
                             ModelDescription& model);

// Returns the embeddings of a family that takes token ids and has layers of this shape.
EmbeddingShape ReadEmbeddings(const Family& family, const LayerShape& layer, ConfigReader& config);

// Judges the keys that `config` has and that no call has named so far. One that the family knows to
// be harmless is passed over: it belongs to training, to a decoder, to tokens, to a part of the
// model that is outside the server, or to a choice between implementations of the same formula. A
// key named after a mechanism that some encoders have (rotary positions, ALiBi, experts) is a
// problem. All others are named in a warning: published configs have keys of their authors' own
// tools, which the library ignores too.
void JudgeUnreadKeys(const Family& family, const ConfigReader& config,
                     std::vector<std::string>& warnings);

}  // namespace attendant
