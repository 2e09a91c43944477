#include "server/describe/report_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"
#include "engine/kernels/isa.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/host/logging.h"

namespace attendant::server {
namespace {

using Lines = std::vector<std::string>;

void Add(const std::string& title, const std::string& value, Lines& lines) {
  lines.push_back(absl::StrFormat("%-19s %s", title, value));
}

std::string InMebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

void AddLayer(const LayerShape& layer, Lines& lines) {
  Add("hidden size", absl::StrCat(layer.hidden_size), lines);
  if (layer.needs_cross_kv()) {
    Add("memory",
        absl::StrCat("needed: keys are made of ", layer.key_inputs(), " columns, values of ",
                     layer.value_inputs()),
        lines);
  }
  Add("heads",
      absl::StrCat(layer.heads, ", keys ", layer.key_width, " and values ", layer.value_width,
                   " wide; scores times ", layer.score_scale),
      lines);
  if (layer.attention != AttentionKind::kSoftmax) Add("attention", Name(layer.attention), lines);
  if (layer.bottleneck > 0) {
    Add("bottleneck", absl::StrCat(layer.bottleneck, " wide around all blocks"), lines);
  }
  if (layer.feed_forwards > 1) {
    Add("feed-forward blocks", absl::StrCat(layer.feed_forwards), lines);
  }
  Add("output projection", layer.has_output_projection ? "yes" : "no", lines);
  Add("feed-forward",
      layer.feed_forward_width == 0
          ? "none"
          : absl::StrCat(layer.feed_forward_width, ", ", Name(layer.activation),
                         layer.has_gate ? ", gated" : ""),
      lines);
  Add("norm",
      layer.norm_placement == NormPlacement::kNone
          ? "none"
          : absl::StrCat(Name(layer.norm_kind), ", ", Name(layer.norm_placement), ", epsilon ",
                         layer.norm_epsilon),
      lines);
  if (layer.has_branch_scale) Add("branch scale", "yes", lines);
  Add("relative positions", Name(layer.relative_positions.kind), lines);
}

// What few models have.
void AddExtras(const ModelDescription& model, Lines& lines) {
  if (model.layer.window > 0) {
    int64_t windowed = 0;
    for (int64_t i = 0; i < model.layers; ++i) {
      windowed += model.layer_shape(model.weight_set(i)).window > 0 ? 1 : 0;
    }
    const AttentionPattern& pattern = model.layer.pattern;
    const std::string unit =
        pattern.block == 1 ? " tokens" : absl::StrCat(" blocks of ", pattern.block, " tokens");
    Add("window", absl::StrCat(model.layer.window, unit, " either way, in ", windowed, " layers"),
        lines);
    if (pattern.first_global + pattern.last_global > 0) {
      Add("global",
          absl::StrCat("the first ", pattern.first_global, " and the last ", pattern.last_global,
                       unit),
          lines);
    }
    if (const size_t globals = pattern.listed.globals().size(); globals > 0) {
      Add("listed global", absl::StrCat(globals, unit), lines);
    }
    if (const size_t pairs = pattern.listed.pairs().size(); pairs > 0) {
      Add("listed pairs", absl::StrCat(pairs, " of", unit), lines);
    }
    if (pattern.full_up_to > 0) {
      Add("no window", absl::StrCat("up to ", pattern.full_up_to, " tokens"), lines);
    }
  }
  if (const ConvolutionShape& convolution = model.layer.convolution; convolution.taps > 0) {
    int64_t layers = 0;
    for (int64_t i = 0; i < model.layers; ++i) {
      layers += model.layer_at(i).convolution.taps > 0 ? 1 : 0;
    }
    Add("convolution",
        absl::StrCat("over ", convolution.taps, " tokens, ", Name(convolution.activation), ", ",
                     convolution.groups, convolution.groups == 1 ? " group" : " groups", ", in ",
                     layers, layers == 1 ? " layer" : " layers"),
        lines);
  }
  for (int64_t i = 0; i < model.layers; ++i) {
    const LayerShape layer = model.layer_at(i);
    if (layer.heads == model.layer.heads) continue;
    Add(absl::StrCat("heads of layer ", i),
        layer.heads == 0 ? "none left" : absl::StrJoin(layer.head_numbers, " "), lines);
  }
  if (const auto& front = model.front) {
    Add("features",
        absl::StrCat("of width ", front->width(model.layer.hidden_size), "; ", front->own_rows(),
                     " rows of the model before them; ",
                     front->features() == 0
                         ? "any number"
                         : absl::StrCat(front->needs_every ? "" : "up to ", front->features())),
        lines);
  }
  if (model.classifier) {
    Add("classifier", absl::StrCat(model.classifier->width(model.layer.hidden_size), " classes"),
        lines);
  }
}

void AddDescription(const ModelDescription& model, Lines& lines) {
  Add("family", model.family, lines);
  Add("layers",
      absl::StrCat(model.layers,
                   model.weight_sets() == model.layers
                       ? ""
                       : absl::StrCat(", with ", model.weight_sets(), " sets of weights")),
      lines);
  AddLayer(model.layer, lines);
  if (model.has_exit_norm) Add("exit norm", "yes", lines);
  if (const auto& embeddings = model.embeddings) {
    const int64_t longest = embeddings->longest_sequence();
    Add("embeddings",
        absl::StrCat("vocabulary ", embeddings->vocabulary, ", positions ", embeddings->positions,
                     ", token types ", embeddings->token_types, ", width ", embeddings->width,
                     "; sequences ",
                     longest == 0 ? "of any length" : absl::StrCat("up to ", longest)),
        lines);
  } else {
    Add("embeddings", "none: takes hidden states", lines);
  }
  if (const auto& pooling = model.pooling) {
    std::vector<std::string> modes;
    for (const PoolingMode mode : pooling->modes) modes.push_back(Name(mode));
    Add("pooling",
        absl::StrCat(absl::StrJoin(modes, " and "),
                     pooling->dense_width > 0
                         ? absl::StrCat(", dense layer with ", Name(pooling->dense_activation))
                         : "",
                     pooling->normalize ? ", normalised" : "", "; ",
                     pooling->width(model.layer.hidden_size), " wide"),
        lines);
  }
  AddExtras(model, lines);
  if (const int64_t bytes = SequenceStateBytes(model); bytes > 0) {
    Add("sequences in parts", absl::StrCat("over EncodeStream, ", bytes, " bytes kept of each"),
        lines);
  }
}

void AddMemory(const ModelReport& report, Lines& lines) {
  const ComputeMode& mode = report.model.setting.compute;
  lines.push_back("");
  Add("compute type",
      absl::StrCat(Name(mode.type), mode.emulate ? ", emulated" : "",
                   mode.gemm == Gemm::kAuto ? "" : absl::StrCat(", gemm=", Name(mode.gemm)),
                   "; ISA ", EffectiveIsa()),
      lines);
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
                   ", activations ", InMebibytes(need.activations), ", receiving ",
                   InMebibytes(need.receiving), ", queue ", InMebibytes(need.queue), ", answers ",
                   InMebibytes(need.running), ", registered memories ",
                   InMebibytes(need.registered)),
      lines);
}

void AddCost(const StageCost& cost, Lines& lines) {
  lines.push_back(absl::StrFormat("  %-22s %14d %14d %14d", cost.stage, cost.per_token,
                                  cost.per_pair, cost.per_sequence));
}

void AddCosts(const std::vector<StageCost>& costs, Lines& lines) {
  lines.push_back("");
  lines.push_back(absl::StrFormat("%-24s %14s %14s %14s", "FLOPs of the products", "per token",
                                  "per len^2", "per sequence"));
  StageCost all = {.stage = "all"};
  for (const StageCost& cost : costs) {
    AddCost(cost, lines);
    all.per_token += cost.per_token;
    all.per_pair += cost.per_pair;
    all.per_sequence += cost.per_sequence;
  }
  AddCost(all, lines);
  for (const int64_t length : {128, 512}) {
    const auto tokens = static_cast<double>(length);
    const double attention = static_cast<double>(all.per_pair) * tokens * tokens;
    const double total = static_cast<double>(all.per_token) * tokens + attention +
                         static_cast<double>(all.per_sequence);
    lines.push_back(
        absl::StrFormat("  a sequence of %d tokens: %.3f GFLOP, %.1f %% of it scores and context",
                        length, total / 1e9, total == 0 ? 0 : 100 * attention / total));
  }
}

void AddRanks(const ModelReport& report, Lines& lines) {
  if (report.ranks.empty() && report.no_ranks.empty()) return;
  const LayerShape& layer = report.model.checkpoint.description.layer;
  lines.push_back("");
  lines.push_back(absl::StrCat("Singular values that hold 90 % of W_Q^T W_K: of each head, out of ",
                               layer.key_width, "; of all together, out of ",
                               std::min(layer.inner_width(), layer.heads * layer.key_width)));
  if (!report.no_ranks.empty()) lines.push_back(absl::StrCat("  none: ", report.no_ranks));
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    const QueryKeyRanks& set = report.ranks[i];
    lines.push_back(absl::StrCat("  weight set ", i, ": ", absl::StrJoin(set.heads, " "),
                                 "; together ", set.concatenated));
  }
}

std::string Destination(const WeightUse& use, const ComputeMode& mode) {
  switch (use.form) {
    case WeightForm::kLinear:
      return absl::StrCat("linear layer ", use.linear, ", rows ", use.first_row, " to ",
                          use.first_row + use.weight.shape[0] - 1, ", ", Name(mode.type),
                          mode.emulate ? " held in f32" : "");
    case WeightForm::kBias:
      return absl::StrCat("bias of ", use.linear, " from ", use.first_row, ", f32");
    case WeightForm::kScale:
      return absl::StrCat("multiplied into ", use.linear);
    case WeightForm::kNorm:
    case WeightForm::kTable:
      return absl::StrCat(Name(use.form), " ", use.weight.name, ", f32");
  }
  return "";
}

// Every tensor of the files, or every weight of a model without files.
void AddTensors(const ModelReport& report, Lines& lines) {
  const ComputeMode& mode = report.model.setting.compute;
  std::map<std::string, std::string> destinations;
  for (const WeightUse& use : report.weights) {
    destinations[use.weight.name] = Destination(use, mode);
  }
  const std::vector<CheckpointTensor>& tensors = report.model.checkpoint.tensors;
  lines.push_back("");
  lines.push_back(tensors.empty() ? "Weights, which come from no file" : "Tensors of the files");
  std::string file;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.file != file) lines.push_back(absl::StrCat("  ", tensor.file));
    file = tensor.file;
    Lines uses;
    for (const std::string& weight : tensor.weights) {
      const auto use = destinations.find(weight);
      uses.push_back(use == destinations.end() ? "made into queries and keys" : use->second);
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
  for (const std::string& refusal : report.refusals) {
    lines.push_back(absl::StrCat("refused: ", refusal));
  }
  lines.push_back(report.refusals.empty() ? "This server would serve it."
                                          : "This server would refuse it.");
}

}  // namespace

std::string ToText(const ModelReport& report) {
  Lines lines;
  const Checkpoint& found = report.model.checkpoint;
  Add("source", report.model.setting.source, lines);
  if (found.description.layers > 0) AddDescription(found.description, lines);
  if (!report.weights.empty()) {
    AddMemory(report, lines);
    AddCosts(report.costs, lines);
    AddRanks(report, lines);
  }
  if (!report.weights.empty() || !found.tensors.empty()) AddTensors(report, lines);
  AddVerdict(report, lines);
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, EscapeControls(line), "\n");
  return text;
}

}  // namespace attendant::server
