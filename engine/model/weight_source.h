// Named weights of one model, read one at a time so that a checkpoint is never in memory as a
// whole.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/model/layer_parts.h"
#include "engine/model/model_description.h"

namespace attendant {

// A tensor the model has, by canonical name, with the shape that the description demands.
//
// Names. Per weight set i of the layers, with prefix "layer.<i>.": query key value [H D, E] (key
// and value unless they are shared with the one before; of other widths of input if the shape says
// so), output [E, C], attention_norm [E],
// feed_forward_gate feed_forward_in [F, E], feed_forward_out [E, F], feed_forward_norm,
// second_attention_norm [E], query_norm, key_norm [H Dk]; each ".weight" and ".bias";
// attention_scale, feed_forward_scale [E]; of layers with a
// bottleneck of width B in the place of E: bottleneck_in, bottleneck_attention [B, E] and
// bottleneck_out [E, B], each with its norm, "…_norm", value [H D, E] where values come from
// outside; of feed-forward blocks before the last
// "before.<i>.feed_forward_in" and so on; position_key position_query [H Dk, E] of disentangled
// attention, ".weight" and ".bias"; score [H Dk] of additive attention;
// key_mixing value_mixing [k, positions] of a Linformer; convolution.weight [E, E / groups, taps],
// convolution.bias and convolution_norm [E]. Once: "embeddings.word" [V, W],
// "embeddings.position" [P, W], "embeddings.token_type" [Y, W], "embeddings.norm.{weight,bias}"
// [W], "embeddings.projection.{weight,bias}" [E, W], "front.projection.{weight,bias}" [E,
// feature_width], "front.class" "front.distillation" [1, E], "front.registers" [registers, E],
// "front.positions" [positions, E], "front.norm.{weight,bias}" [E], "relative_positions" [buckets,
// H], or [position rows, E] with "relative_positions_norm.{weight,bias}" [E],
// "exit_norm.{weight,bias}" [E], "pooling.dense.{weight,bias}" [dense_width, modes E],
// "pooling.dense_norm.{weight,bias}" [dense_width], "pooling.output.{weight,bias}" [output_width,
// dense_width], the same of "classifier". Linear weights are [out, in]. RMS norms have no bias.
// H and C are those that the layer's pruning leaves; without any head, of projections only
// "output.bias" is left.
struct WeightSpec {
  std::string name;
  std::vector<int64_t> shape;
  bool optional = false;  // every ".bias" is
};

// The one or two tensors of a part.
std::vector<WeightSpec> WeightsOf(const ModelPart& part);

// Every tensor that a model of this description has, in the order in which loading reads them.
std::vector<WeightSpec> ListWeights(const ModelDescription& description);

// Where the weights of one model come from. One thread.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // True if the model has this tensor (an optional one may be absent).
  virtual bool Has(absl::string_view name) const = 0;

  // Reads one tensor, converted to float32, row-major in the canonical shape, into `target` (of
  // exactly its elements). An error names file, tensor, what was expected and what was found.
  virtual absl::Status Read(absl::string_view name, absl::Span<float> target) = 0;
};

}  // namespace attendant
