#include "server/metrics/model_gauges.h"

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

prometheus::Family<prometheus::Gauge>& Make(prometheus::Registry& registry, const char* name,
                                            const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

}  // namespace

ModelGaugeFamilies::ModelGaugeFamilies(prometheus::Registry& registry)
    : info_(Make(registry, "attendant_model_info", "1, with the model's properties as labels.")),
      bytes_(Make(registry, "attendant_model_bytes",
                  "Memory of a model: its weights, and the activations of its batches.")),
      seconds_per_layer_(Make(registry, "attendant_cost_seconds_per_layer",
                              "Fixed cost of a layer per batch, measured at startup.")),
      flops_(Make(registry, "attendant_cost_flops_per_second",
                  "Floating point operations per second assumed in predictions.")),
      correction_(Make(registry, "attendant_cost_correction",
                       "Correction factor for predicted times, learned while serving.")) {}

void ModelGaugeFamilies::Set(absl::Span<const ModelGauges> models) {
  absl::MutexLock lock(&mutex_);
  Series served;
  for (const ModelGauges& model : models) Put(model, served);
  for (const auto& series : series_) {
    if (!served.contains(series)) series.first->Remove(series.second);
  }
  series_ = std::move(served);
}

void ModelGaugeFamilies::Put(const ModelGauges& model, Series& series) {
  const auto put = [&](Family& family, prometheus::Labels labels, double value) {
    labels["model"] = model.model;
    prometheus::Gauge& gauge = family.Add(labels);
    gauge.Set(value);
    series.emplace(&family, &gauge);
  };
  put(info_,
      {{"version", absl::StrCat(model.version)},
       {"family", model.family},
       {"compute_type", model.compute_type},
       {"layers", absl::StrCat(model.layers)},
       {"heads", absl::StrCat(model.heads)},
       {"hidden_size", absl::StrCat(model.hidden_size)}},
      1);
  put(bytes_, {{"part", "weights"}}, static_cast<double>(model.weight_bytes));
  put(bytes_, {{"part", "activations"}}, static_cast<double>(model.activation_bytes));
  put(seconds_per_layer_, {}, model.seconds_per_layer);
  put(flops_, {{"part", "products"}}, model.product_flops);
  put(flops_, {{"part", "attention"}}, model.attention_flops);
  put(correction_, {}, model.correction);
}

}  // namespace attendant::server
