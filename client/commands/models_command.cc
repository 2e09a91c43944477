#include "client/commands/models_command.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/to_json.h"

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

std::string ComputeType(const ModelInfo& model) {
  return model.compute_type.empty() ? "-" : model.compute_type;
}

std::string InputsOf(const ModelInfo& model) {
  std::string inputs = "hidden states";
  if (model.embeddings) inputs += ", token ids";
  if (model.front) inputs += ", features";
  return inputs;
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
                          model.layer.heads, ComputeType(model), InputsOf(model)));
  }
}

void PrintLine(std::ostream& out, const std::string& title, const std::string& value) {
  out << absl::StrFormat("%-24s %s\n", title, value);
}

void PrintCosts(std::ostream& out, const std::vector<StageCost>& costs) {
  int64_t per_token = 0, per_pair = 0;
  for (const StageCost& cost : costs) {
    per_token += cost.flops_per_token;
    per_pair += cost.flops_per_pair;
  }
  PrintLine(out, "FLOPs",
            absl::StrCat(per_token, " per token, ", per_pair, " per pair of query and key"));
  for (const StageCost& cost : costs) {
    std::vector<std::string> parts;
    if (cost.flops_per_token > 0) parts.push_back(absl::StrCat(cost.flops_per_token, " per token"));
    if (cost.flops_per_pair > 0) parts.push_back(absl::StrCat(cost.flops_per_pair, " per pair"));
    if (cost.flops_per_sequence > 0) {
      parts.push_back(absl::StrCat(cost.flops_per_sequence, " per sequence"));
    }
    PrintLine(out, "  " + cost.stage, absl::StrJoin(parts, ", "));
  }
}

void PrintDetails(std::ostream& out, const ModelInfo& model) {
  const LayerDescription& layer = model.layer;
  PrintLine(out, "name", model.name);
  PrintLine(out, "family", model.family);
  PrintLine(out, "layers",
            model.weight_sets == model.layers
                ? absl::StrCat(model.layers)
                : absl::StrCat(model.layers, ", with ", model.weight_sets, " sets of weights"));
  PrintLine(out, "hidden size", absl::StrCat(layer.hidden_size));
  PrintLine(out, "heads",
            absl::StrCat(layer.heads, ", keys ", layer.key_width, " and values ", layer.value_width,
                         " wide"));
  PrintLine(out, "score scale", absl::StrCat(layer.score_scale));
  PrintLine(out, "output projection", layer.has_output_projection ? "yes" : "no");
  PrintLine(out, "feed-forward",
            layer.feed_forward_width == 0
                ? "none"
                : absl::StrCat(layer.feed_forward_width, ", ", layer.activation,
                               layer.has_gate ? ", gated" : ""));
  PrintLine(
      out, "norm",
      absl::StrCat(layer.norm_kind, ", ", layer.norm_placement, ", epsilon ", layer.norm_epsilon,
                   model.has_exit_norm ? ", one after the last layer" : ""));
  if (layer.has_branch_scale) PrintLine(out, "branch scale", "yes");
  PrintLine(out, "relative positions", layer.relative_positions);
  if (!layer.attention.empty() && layer.attention != "softmax") {
    PrintLine(out, "attention", layer.attention);
  }
  if (layer.window > 0) {
    PrintLine(out, "window",
              absl::StrCat(layer.window, " blocks of ", layer.window_block, " either way, in ",
                           model.windowed_layers.size(), " of the layers"));
    if (!model.block_pairs.empty() || !model.global_blocks.empty()) {
      PrintLine(out, "listed blocks",
                absl::StrCat(model.block_pairs.size(), " pairs, ", model.global_blocks.size(),
                             " global"));
    }
  }
  PrintLine(out, "input projections", absl::StrCat(layer.input_projections));
  if (layer.key_input_width != layer.hidden_size || layer.value_input_width != layer.hidden_size) {
    PrintLine(out, "memory",
              absl::StrCat("needed: keys are made of ", layer.key_input_width,
                           " columns, values of ", layer.value_input_width));
  }
  PrintLine(out, "attention output width", absl::StrCat(layer.output_width));
  if (model.embeddings) {
    PrintLine(out, "embeddings",
              absl::StrCat("vocabulary ", model.embeddings->vocabulary, ", positions ",
                           model.embeddings->positions, ", token types ",
                           model.embeddings->token_types, "; sequences ",
                           model.embeddings->longest_sequence == 0
                               ? "of any length"
                               : absl::StrCat("up to ", model.embeddings->longest_sequence)));
  }
  if (model.front) {
    const FrontDescription& front = *model.front;
    PrintLine(out, "features",
              absl::StrCat(front.feature_width, " wide, behind ", front.own_rows,
                           " rows of the model's own; sequences ",
                           front.features == 0 ? "of any length"
                           : front.needs_every ? absl::StrCat("of ", front.features)
                                               : absl::StrCat("up to ", front.features)));
  }
  PrintLine(out, "pooled width", absl::StrCat(model.pooled_width));
  for (const PrunedLayer& pruned : model.pruned_layers) {
    PrintLine(out, absl::StrCat("heads of layer ", pruned.layer),
              pruned.heads.empty() ? "none left" : absl::StrJoin(pruned.heads, " "));
  }
  if (model.classes > 0) PrintLine(out, "classes", absl::StrCat(model.classes));
  PrintLine(out, "compute", ComputeType(model));
  if (!model.gemm.empty()) PrintLine(out, "matrix products", model.gemm);
  PrintLine(out, "weights", absl::StrFormat("%.1f MiB", model.weight_bytes / 1048576.0));
  if (!model.base.empty()) PrintLine(out, "shares weights of", model.base);
  if (model.sequence_state_bytes > 0) {
    PrintLine(out, "sequences in parts",
              absl::StrCat("yes, ", model.sequence_state_bytes, " bytes kept of each"));
  }
  PrintCosts(out, model.stage_costs);
  PrintLine(out, "request limit",
            absl::StrCat(model.limits.max_request_tokens, " tokens, ",
                         model.limits.max_request_bytes, " bytes"));
  PrintLine(out, "answer limit", absl::StrCat(model.limits.max_answer_bytes, " bytes"));
  PrintLine(out, "batch limit", absl::StrCat(model.limits.max_batch_tokens, " tokens"));
  PrintLine(
      out, "threads",
      absl::StrCat(model.thread_plan.instances, " x ", model.thread_plan.threads_per_instance, ", ",
                   model.thread_plan.isa, ", oneDNN ", model.thread_plan.onednn_version));
  if (model.thread_plan.rows_per_thread_from > 0) {
    PrintLine(out, "rows of each thread",
              absl::StrCat("from ", model.thread_plan.rows_per_thread_from, " tokens on"));
  }
  if (!model.thread_plan.instance_nodes.empty()) {
    PrintLine(out, "on NUMA nodes", absl::StrJoin(model.thread_plan.instance_nodes, " "));
  }
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
