#include "server/models/gauges_of_model.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

// Returns the bytes of all copies, excluding weights shared with a base.
int64_t WeightBytes(const ServedModel& model) {
  int64_t bytes = model.encoder->weight_bytes();
  for (const auto& copy : model.further_copies) bytes += copy->weight_bytes();
  return bytes;
}

// Returns the bytes of the activations of all instances.
int64_t ActivationBytes(const ServedModel& model) {
  int64_t bytes = 0;
  if (model.runs == nullptr) return bytes;
  for (const EncoderRun& run : *model.runs) bytes += run.bytes();
  return bytes;
}

}  // namespace

void AddGauges(const ServedModel& model, absl::Time now, Gauges& gauges) {
  const ModelDescription& description = model.encoder->description();
  gauges.Add("attendant_model_info", "1, with the model's properties as labels.", 1,
             {{"model", model.name},
              {"version", absl::StrCat(model.version)},
              {"family", description.family},
              {"compute_type", Name(model.encoder->mode().type)},
              {"layers", absl::StrCat(description.layers)},
              {"heads", absl::StrCat(description.layer.attention.heads)},
              {"hidden_size", absl::StrCat(description.layer.hidden_size)}});
  constexpr char kBytesHelp[] =
      "Memory of a model: its weights, and the activations of its batches.";
  gauges.Add("attendant_model_bytes", kBytesHelp, WeightBytes(model),
             {{"model", model.name}, {"part", "weights"}});
  gauges.Add("attendant_model_bytes", kBytesHelp, ActivationBytes(model),
             {{"model", model.name}, {"part", "activations"}});
  const CostRates rates = model.cost->rates();
  gauges.Add("attendant_cost_seconds_per_layer",
             "Fixed cost of a layer per batch, measured at startup.", rates.seconds_per_layer,
             {{"model", model.name}});
  constexpr char kFlopsHelp[] = "Floating point operations per second assumed in predictions.";
  gauges.Add("attendant_cost_flops_per_second", kFlopsHelp, rates.product_flops,
             {{"model", model.name}, {"part", "products"}});
  gauges.Add("attendant_cost_flops_per_second", kFlopsHelp, rates.attention_flops,
             {{"model", model.name}, {"part", "attention"}});
  gauges.Add("attendant_cost_correction",
             "Correction factor for predicted times, learned while serving.",
             model.cost->correction(now), {{"model", model.name}});
}

}  // namespace attendant::server
