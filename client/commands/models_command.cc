#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/to_json.h"
#include "client/commands/commands.h"
#include "client/flags/flag_kinds.h"
#include "proto/model_table.h"

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
  return model.compute_type().empty() ? "-" : model.compute_type();
}

std::string InputsOf(const ModelInfo& model) {
  std::string inputs = model.takes_texts() ? "texts, hidden states" : "hidden states";
  if (model.has_embeddings()) inputs += ", token ids";
  if (model.has_front()) inputs += ", features";
  return inputs;
}

void PrintTable(std::ostream& out, const std::vector<ModelInfo>& models) {
  size_t width = 4;
  size_t family_width = 6;
  for (const ModelInfo& model : models) {
    width = std::max(width, model.name().size());
    family_width = std::max(family_width, model.family().size());
  }
  const auto print = [&](const std::string& name, const std::string& family,
                         const std::string& rest) {
    out << absl::StrFormat("%-*s  %-*s  %s\n", static_cast<int>(width), name,
                           static_cast<int>(family_width), family, rest);
  };
  print("NAME", "FAMILY", "LAYERS  HIDDEN  HEADS  COMPUTE   INPUT");
  for (const ModelInfo& model : models) {
    print(model.name(), model.family(),
          absl::StrFormat("%6d  %6d  %5d  %-8s  %s", model.layers(), model.layer().hidden_size(),
                          model.layer().heads(), ComputeType(model), InputsOf(model)));
  }
}

void PrintDetails(std::ostream& out, const ModelInfo& model) {
  for (const proto::ModelLine& line : proto::ModelLines(model)) {
    out << absl::StrFormat("%-24s %s\n", line.label, line.text);
  }
}

class ModelsCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  std::string name_;
  bool names_only_ = false;
};

CommandTable ModelsCommand::Table() {
  CommandTable table = {
      "Server", "models", "List the models, or describe one",
      "The description contains layers, inputs, limits, compute type, threads and costs.",
      "attendant-client models\n"
      "attendant-client models minilm"};
  table.Add("Arguments", {{"NAME", "", "The model to describe", TextKind(name_, "list all")}});
  table.Add("Output", {{"--names", "", "Print only the names, one per line",
                        SwitchKind(names_only_), "", "NAME"}});
  return table;
}

ExitCode ModelsCommand::Run(Session& session) {
  const absl::StatusOr<std::vector<ModelInfo>> models = Describe(session.Connect(), session, name_);
  if (!models.ok()) return ReportServerError(session, models.status());
  if (names_only_ && !session.json) {
    for (const ModelInfo& model : *models) session.out << model.name() << "\n";
  } else if (session.json) {
    std::vector<JsonValue> list;
    for (const ModelInfo& model : *models) list.push_back(ToJson(model));
    PrintJson(session, {{"models", list}});
  } else if (name_.empty()) {
    PrintTable(session.out, *models);
  } else {
    PrintDetails(session.out, models->front());
  }
  return kSucceeded;
}

}  // namespace

std::unique_ptr<Command> MakeModelsCommand() { return std::make_unique<ModelsCommand>(); }

}  // namespace attendant::client
