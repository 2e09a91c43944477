// WeightSource: reads the named weights of one model one at a time, so that a checkpoint is never
// fully in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/data_type.h"
#include "engine/model/layer_parts.h"
#include "engine/model/model_description.h"

namespace attendant {

// A tensor of a model, with its canonical name and the shape that the description requires. Linear
// weights are [out, in]. RMS norms have no bias. The letters are those of model_description.h; V, P
// and Y are the rows of the word, position and token type tables, and W is their width.
//
// Each weight set i of the layers has these names after the prefix "layer.<i>.":
// - each with ".weight" and ".bias": query [H Dk, E], key [K Dk, E], value [K Dv, E]; key or value
//   is absent if it shares a projection, and has another input width if the shape says so;
//   output [E, C]; attention_norm [E]; feed_forward_gate, feed_forward_in [F, E];
//   feed_forward_out [E, F]; feed_forward_norm, second_attention_norm [E]; query_norm [H Dk],
//   key_norm [K Dk], or both [Dk] if each head has its own norm; position_key, position_query
//   [H Dk, E] in disentangled attention;
// - attention_scale, feed_forward_scale [E];
// - in layers with a bottleneck of width B, which replaces E above: bottleneck_in,
//   bottleneck_attention [B, E] and bottleneck_out [E, B], each with a norm "…_norm"; value
//   [K Dv, E] if values are projected from outside the bottleneck;
// - feed-forward blocks before the last one: "before.<i>.feed_forward_in" and so on;
// - in a mixture: router.weight [experts, E], router.bias and experts_bias [E]; the weights of
//   expert i have the prefix "expert.<i>.";
// - score [H Dk] in additive attention; key_mixing, value_mixing [k, positions] in a Linformer;
// - convolution.weight [E, E / groups, taps], convolution.bias and convolution_norm [E].
// H and C do not include pruned heads. If all heads of a layer are pruned, "output.bias" is the
// only tensor of its projections.
//
// These names occur once in a model:
// - "embeddings.word" [V, W], "embeddings.position" [P, W], "embeddings.token_type" [Y, W],
//   "embeddings.task_type" [tasks, W], "embeddings.norm.{weight,bias}" [W],
//   "embeddings.projection.{weight,bias}" [E, W], or [E, 3 W] with neighbours;
// - the patch embedding: "front.projection.{weight,bias}" [E, feature_width], "front.class",
//   "front.distillation" [1, E], "front.registers" [registers, E], "front.positions" [positions,
//   E], "front.norm.{weight,bias}" [E];
// - "relative_positions" [buckets, H], or [position rows, E] with
//   "relative_positions_norm.{weight,bias}" [E];
// - "exit_norm.{weight,bias}" [E];
// - "pooling.dense.{weight,bias}" [dense_width, modes E], "pooling.dense_norm.{weight,bias}"
//   [dense_width], "pooling.output.{weight,bias}" [output_width, dense_width],
//   "pooling.further.0.{weight,bias}" [width of that layer, width before it]; projections of
//   residuals, such as "pooling.dense.residual.weight", with the shape of their layer's weight; the
//   feed-forward block "pooling.block_norm.{weight,bias}" [width], "pooling.block_in.{weight,bias}"
//   [block, width] and "pooling.block_out.{weight,bias}" [width, block]; and the same names with
//   "classifier", "token_head" or "lexical_head" instead of "pooling", of which the last two have
//   E inputs;
// - in attention pooling, "pooling.probe" [1, E] and "pooling.{query,key,value}.{weight,bias}"
//   [E, E];
// - "vocabulary_head.dense.{weight,bias}" [width, E], "vocabulary_head.dense_norm.{weight,bias}"
//   [width], "vocabulary_head.output.{weight,bias}" [V, width].
struct WeightSpec {
  std::string name;
  std::vector<int64_t> shape;
  bool optional = false;  // true for every ".bias"
};

// Returns the one or two tensors of a part.
std::vector<WeightSpec> WeightsOf(const ModelPart& part);

// Returns every tensor of a model, in the order in which loading reads them.
std::vector<WeightSpec> ListWeights(const ModelDescription& description);

// Reads the weights of one model, for example from files. Not thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Whether the source has this tensor. Optional tensors may be absent.
  virtual bool Has(absl::string_view name) const = 0;

  // Reads one tensor into `target`, which has exactly its number of elements, in row-major order of
  // the canonical shape and converted to float32. Errors name the file, the tensor, and the
  // expected and actual values.
  virtual absl::Status Read(absl::string_view name, absl::Span<float> target) = 0;

  // Reads one tensor into `target`, which has exactly its number of bytes, without conversion, if
  // the source stores it as `type`, a float type. Otherwise returns false and leaves `target`
  // undefined. Returns the errors of Read.
  virtual absl::StatusOr<bool> ReadStored(absl::string_view /*name*/, DataType /*type*/,
                                          absl::Span<char> /*target*/) {
    return false;
  }
};

}  // namespace attendant
