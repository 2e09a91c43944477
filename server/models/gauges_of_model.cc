#include "server/models/gauges_of_model.h"

namespace attendant::server {

ModelGauges GaugesOf(const ServedModel& model, absl::Time now) {
  const ModelDescription& description = model.encoder->description();
  const CostRates rates = model.cost->rates();
  ModelGauges gauges;
  gauges.model = model.name;
  gauges.version = model.version;
  gauges.family = description.family;
  gauges.compute_type = Name(model.encoder->mode().type);
  gauges.layers = description.layers;
  gauges.heads = description.layer.attention.heads;
  gauges.hidden_size = description.layer.hidden_size;
  gauges.weight_bytes = model.encoder->weight_bytes();
  for (const auto& copy : model.further_copies) gauges.weight_bytes += copy->weight_bytes();
  if (model.runs != nullptr) {
    for (const EncoderRun& run : *model.runs) gauges.activation_bytes += run.bytes();
  }
  gauges.seconds_per_layer = rates.seconds_per_layer;
  gauges.product_flops = rates.product_flops;
  gauges.attention_flops = rates.attention_flops;
  gauges.correction = model.cost->correction(now);
  return gauges;
}

}  // namespace attendant::server
