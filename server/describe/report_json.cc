#include <nlohmann/json.hpp>

#include "proto/model_json.h"
#include "server/describe/model_report.h"

namespace attendant::server {
namespace {

using proto::Json;

Json OfMemory(const ModelReport& report) {
  Json weights = Json::object();
  for (const WeightMemory& memory : report.weight_memory) {
    weights[Name(memory.type)] = {
        {"bytes", memory.bytes},
        {"refusal", memory.refusal.empty() ? Json(nullptr) : Json(memory.refusal)}};
  }
  Json json = {{"weights", weights},
               {"activations",
                {{"bytes", report.run_bytes},
                 {"tokens", report.run_tokens},
                 {"threads", report.plan.threads_per_instance},
                 {"instances", report.plan.instances}}},
               {"server", nullptr},
               {"limit", {{"bytes", report.limit.bytes}, {"reason", report.limit.reason}}}};
  if (const auto& need = report.need) {
    json["server"] = {{"bytes", need->total()},
                      {"loading", need->weights},
                      {"weight_copies", report.plan.copies()},
                      {"activations", need->activations},
                      {"requests", need->requests},
                      {"transport", need->transport},
                      {"cache", need->cache}};
  }
  return json;
}

Json OfWeights(const std::vector<WeightUse>& weights) {
  Json list = Json::array();
  for (const WeightUse& use : weights) {
    Json weight = {{"name", use.weight.name},
                   {"shape", use.weight.shape},
                   {"optional", use.weight.optional},
                   {"form", Name(use.form)}};
    if (!use.linear.empty()) {
      weight["linear"] = use.linear;
      weight["first_row"] = use.first_row;
    }
    list.push_back(weight);
  }
  return list;
}

Json OfTensors(const std::vector<CheckpointTensor>& tensors) {
  Json list = Json::array();
  for (const CheckpointTensor& tensor : tensors) {
    list.push_back({{"file", tensor.file},
                    {"name", tensor.name},
                    {"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes},
                    {"weights", tensor.weights}});
  }
  return list;
}

Json OfRanks(const std::vector<QueryKeyRanks>& ranks) {
  Json list = Json::array();
  for (const QueryKeyRanks& set : ranks) {
    list.push_back({{"heads", set.heads}, {"concatenated", set.concatenated}});
  }
  return list;
}

}  // namespace

std::string ToJson(const ModelReport& report) {
  const Checkpoint& found = report.model.checkpoint;
  Json json = {{"source", report.model.setting.source},
               {"served", report.refusals.empty()},
               {"refusals", report.refusals},
               {"warnings", found.warnings},
               {"description", nullptr}};
  if (found.description.layer.hidden_size > 0)
    json["description"] = proto::ToJson(Describe(report));
  if (!report.weights.empty()) {
    json["memory"] = OfMemory(report);
    if (!report.ranks.empty()) json["query_key_ranks"] = OfRanks(report.ranks);
    if (!report.no_ranks.empty()) json["no_query_key_ranks"] = report.no_ranks;
    json["weights"] = OfWeights(report.weights);
  }
  json["tensors"] = OfTensors(found.tensors);
  // Names in files need not be UTF-8; the document has to be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace attendant::server
