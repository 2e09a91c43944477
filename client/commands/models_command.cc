#include "client/commands/models_command.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands/to_json.h"

namespace attendant::client {
namespace {

absl::StatusOr<std::vector<ModelInfo>> Describe(const Client& client, const Session& session,
                                                const std::string& name) {
  std::vector<std::string> names = {name};
  if (name.empty()) {
    absl::StatusOr<std::vector<std::string>> listed = client.ListModels(session.call);
    if (!listed.ok()) return listed.status();
    names = *std::move(listed);
  }
  std::vector<ModelInfo> models;
  for (const std::string& listed : names) {
    absl::StatusOr<ModelInfo> model = client.GetModel(listed, session.call);
    if (!model.ok()) return model.status();
    models.push_back(*std::move(model));
  }
  return models;
}

const char* ComputeType(const ModelInfo& model) {
  return model.compute_dtype ? Name(*model.compute_dtype) : "-";
}

void PrintTable(std::ostream& out, const std::vector<ModelInfo>& models) {
  size_t width = 4;
  size_t family_width = 6;
  for (const ModelInfo& model : models) {
    width = std::max(width, model.name.size());
    family_width = std::max(family_width, model.family.size());
  }
  const auto print = [&](const std::string& name, const std::string& family,
                         const std::string& rest) {
    out << absl::StrFormat("%-*s  %-*s  %s\n", static_cast<int>(width), name,
                           static_cast<int>(family_width), family, rest);
  };
  print("NAME", "FAMILY", "LAYERS  HIDDEN  HEADS  COMPUTE   INPUT");
  for (const ModelInfo& model : models) {
    print(model.name, model.family,
          absl::StrFormat("%6d  %6d  %5d  %-8s  %s", model.layers, model.layer.hidden_size,
                          model.layer.heads, ComputeType(model),
                          model.embeddings ? "hidden states, token ids" : "hidden states"));
  }
}

void PrintLine(std::ostream& out, const std::string& title, const std::string& value) {
  out << absl::StrFormat("%-18s %s\n", title, value);
}

void PrintDetails(std::ostream& out, const ModelInfo& model) {
  const LayerDescription& layer = model.layer;
  PrintLine(out, "name", model.name);
  PrintLine(out, "family", model.family);
  PrintLine(out, "layers", absl::StrCat(model.layers));
  PrintLine(out, "hidden size", absl::StrCat(layer.hidden_size));
  PrintLine(out, "heads",
            absl::StrCat(layer.heads, ", keys ", layer.key_width, " and values ", layer.value_width,
                         " wide"));
  PrintLine(out, "score scale", absl::StrCat(layer.score_scale));
  PrintLine(out, "output projection", layer.has_output_projection ? "yes" : "no");
  PrintLine(out, "feed-forward",
            layer.feed_forward_width == 0
                ? "none"
                : absl::StrCat(layer.feed_forward_width, ", ", layer.activation));
  PrintLine(out, "norm", absl::StrCat(layer.norm_placement, ", epsilon ", layer.norm_epsilon));
  if (model.embeddings) {
    PrintLine(out, "embeddings",
              absl::StrCat("vocabulary ", model.embeddings->vocabulary, ", positions ",
                           model.embeddings->positions, ", token types ",
                           model.embeddings->token_types, "; sequences ",
                           model.embeddings->longest_sequence == 0
                               ? "of any length"
                               : absl::StrCat("up to ", model.embeddings->longest_sequence)));
  }
  PrintLine(out, "pooled width", absl::StrCat(model.pooled_width));
  PrintLine(out, "compute", ComputeType(model));
  PrintLine(out, "weights", absl::StrFormat("%.1f MiB", model.weight_bytes / 1048576.0));
  PrintLine(out, "request limit",
            absl::StrCat(model.limits.max_request_tokens, " tokens, ",
                         model.limits.max_request_bytes, " bytes"));
  PrintLine(out, "answer limit", absl::StrCat(model.limits.max_answer_bytes, " bytes"));
  PrintLine(out, "batch limit", absl::StrCat(model.limits.max_batch_tokens, " tokens"));
  PrintLine(
      out, "threads",
      absl::StrCat(model.thread_plan.instances, " x ", model.thread_plan.threads_per_instance, ", ",
                   model.thread_plan.isa, ", oneDNN ", model.thread_plan.onednn_version));
  if (!model.unused_tensors.empty()) {
    PrintLine(out, "unused tensors", absl::StrJoin(model.unused_tensors, ", "));
  }
}

}  // namespace

CLI::App* ModelsCommand::AddTo(CLI::App& app) {
  CLI::App* models = app.add_subcommand("models", "Lists the models, or describes one");
  auto* name = models->add_option("name", name_, "The model to describe");
  models->add_flag("--names", names_only_, "Print the names alone, one a line")->excludes(name);
  return models;
}

ExitCode ModelsCommand::Run(Session& session) {
  const absl::StatusOr<std::vector<ModelInfo>> models = Describe(session.Connect(), session, name_);
  if (!models.ok()) return ReportServerError(session, models.status());
  if (names_only_ && !session.json) {
    for (const ModelInfo& model : *models) session.out << model.name << "\n";
  } else if (session.json) {
    Json list = Json::array();
    for (const ModelInfo& model : *models) list.push_back(ToJson(model));
    PrintJson(session, {{"models", list}});
  } else if (name_.empty()) {
    PrintTable(session.out, *models);
  } else {
    PrintDetails(session.out, models->front());
  }
  return kSucceeded;
}

}  // namespace attendant::client
