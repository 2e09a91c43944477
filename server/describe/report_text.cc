#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"
#include "proto/byte_text.h"
#include "proto/model_table.h"
#include "server/describe/model_report.h"
#include "server/host/logging.h"

namespace attendant::server {
namespace {

using proto::InMebibytes;
using Lines = std::vector<std::string>;

void Add(const std::string& title, const std::string& value, Lines& lines) {
  lines.push_back(absl::StrFormat("%-19s %s", title, value));
}

void AddMemory(const ModelReport& report, Lines& lines) {
  lines.push_back("");
  for (const WeightMemory& memory : report.weight_memory) {
    Add(absl::StrCat("weights in ", Name(memory.type)),
        absl::StrCat(InMebibytes(memory.bytes),
                     memory.refusal.empty() ? "" : "; not here: ", memory.refusal),
        lines);
  }
  Add("activations",
      absl::StrCat(InMebibytes(report.run_bytes), " for ", report.run_tokens, " tokens on ",
                   report.plan.threads_per_instance, " threads, in each of ", report.plan.instances,
                   " instances"),
      lines);
  if (!report.need) return;
  const MemoryNeed& need = *report.need;
  const std::string copies =
      report.plan.copies() > 1 ? absl::StrCat(" in ", report.plan.copies(), " copies") : "";
  Add("memory",
      absl::StrCat(InMebibytes(need.total()), " of ", InMebibytes(report.limit.bytes), " ",
                   report.limit.reason, ": loading ", InMebibytes(need.weights), copies,
                   ", activations ", InMebibytes(need.activations), ", requests at least ",
                   InMebibytes(need.requests), ", gRPC ", InMebibytes(need.transport),
                   need.cache > 0 ? absl::StrCat(", cache ", InMebibytes(need.cache)) : ""),
      lines);
}

void AddRanks(const ModelReport& report, Lines& lines) {
  if (report.ranks.empty() && report.no_ranks.empty()) return;
  const LayerShape& layer = report.model.checkpoint.description.layer;
  lines.push_back("");
  lines.push_back(
      absl::StrCat("Singular values that hold 90 % of W_Q^T W_K: for each head, out of ",
                   layer.attention.key_width, "; for all heads together, out of ",
                   std::min(layer.inner_width(), layer.query_columns())));
  if (!report.no_ranks.empty()) lines.push_back(absl::StrCat("  none: ", report.no_ranks));
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    const QueryKeyRanks& set = report.ranks[i];
    lines.push_back(absl::StrCat("  weight set ", i, ": ", absl::StrJoin(set.heads, " "),
                                 "; together ", set.concatenated));
  }
}

// The types that tables have in memory.
const char* ShortName(DataType type) {
  if (type == DataType::kBFloat16) return "bf16";
  return type == DataType::kFloat16 ? "f16" : "f32";
}

// Returns the compute type of linear layers, and their storage type if it differs.
std::string TypeOfLinear(const ModelDescription& model, const ComputeMode& mode) {
  if (mode.emulate) return absl::StrCat(Name(mode.type), " held in f32");
  if (mode.type != ComputeType::kF32 || mode.gemm == Gemm::kOneDnn) return Name(mode.type);
  const char* const kept =
      mode.weights == WeightType::kAuto ? ShortName(model.linear_type) : Name(mode.weights);
  return kept == std::string("f32") ? kept : absl::StrCat("f32 held in ", kept);
}

std::string Destination(const WeightUse& use, const std::string& linear) {
  switch (use.form) {
    case WeightForm::kLinear:
      return absl::StrCat("linear layer ", use.linear, ", rows ", use.first_row, " to ",
                          use.first_row + use.weight.shape[0] - 1, ", ", linear);
    case WeightForm::kBias:
      return absl::StrCat("bias of ", use.linear, " from ", use.first_row, ", f32");
    case WeightForm::kScale:
      return absl::StrCat("multiplied into ", use.linear);
    case WeightForm::kNorm:
    case WeightForm::kTable:
      return absl::StrCat(Name(use.form), " ", use.weight.name, ", ", ShortName(use.type));
  }
  return "";
}

// Every tensor of the files, or every weight of a model without files.
void AddTensors(const ModelReport& report, Lines& lines) {
  const std::string linear =
      TypeOfLinear(report.model.checkpoint.description, report.model.setting.compute);
  std::map<std::string, std::string> destinations;
  for (const WeightUse& use : report.weights) {
    destinations[use.weight.name] = Destination(use, linear);
  }
  const std::vector<CheckpointTensor>& tensors = report.model.checkpoint.tensors;
  lines.push_back("");
  lines.push_back(tensors.empty() ? "Weights without a file" : "Tensors of the files");
  std::string file;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.file != file) lines.push_back(absl::StrCat("  ", tensor.file));
    file = tensor.file;
    Lines uses;
    for (const std::string& weight : tensor.weights) {
      const auto use = destinations.find(weight);
      if (use != destinations.end()) {
        uses.push_back(use->second);
      } else {
        uses.push_back(absl::StartsWith(weight, "similarity.") ? "part of the description"
                                                               : "made into queries and keys");
      }
    }
    lines.push_back(absl::StrCat("    ", tensor.name, " ", tensor.dtype, " ",
                                 ShapeToString(tensor.shape), " -> ",
                                 uses.empty() ? "not used" : absl::StrJoin(uses, "; ")));
  }
  if (!tensors.empty()) return;
  for (const WeightUse& use : report.weights) {
    lines.push_back(absl::StrCat("    ", use.weight.name, " ", ShapeToString(use.weight.shape),
                                 " -> ", destinations[use.weight.name]));
  }
}

void AddVerdict(const ModelReport& report, Lines& lines) {
  lines.push_back("");
  for (const std::string& warning : report.model.checkpoint.warnings) {
    lines.push_back(absl::StrCat("warning: ", warning));
  }
  lines.push_back(report.refusals.empty() ? "This server would serve it."
                                          : "This server would refuse it.");
}

}  // namespace

std::string ToText(const ModelReport& report) {
  Lines lines;
  const Checkpoint& found = report.model.checkpoint;
  Add("source", report.model.setting.source, lines);
  for (const std::string& refusal : report.refusals) {
    lines.push_back(absl::StrCat("refused: ", refusal));
  }
  if (found.description.layer.hidden_size > 0) {
    for (const proto::ModelLine& line : proto::ModelLines(Describe(report))) {
      Add(line.label, line.text, lines);
    }
  }
  if (!report.weights.empty()) {
    AddMemory(report, lines);
    AddRanks(report, lines);
  }
  // The tensors of files that are refused as a whole are unknown.
  const bool embedded = report.refusals.empty() && !report.weights.empty();
  if (embedded || !found.tensors.empty()) AddTensors(report, lines);
  AddVerdict(report, lines);
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, EscapeControls(line), "\n");
  return text;
}

}  // namespace attendant::server
