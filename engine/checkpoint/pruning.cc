#include "engine/checkpoint/pruning.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/computed_weights.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/layer_parts.h"
#include "engine/model/pruned_heads.h"

namespace attendant {
namespace {

// Reads a weight of a layer with all heads, and keeps the elements of `heads`: of each of its rows,
// which are divided evenly among all heads.
struct KeptHeads {
  absl::Status operator()(WeightSource& whole, absl::Span<float> target) const {
    std::vector<float> all(rows * columns);
    RETURN_IF_ERROR(whole.Read(name, absl::MakeSpan(all)));
    const int64_t width = head_width();
    float* to = target.data();
    for (int64_t r = 0; r < rows; ++r) {
      for (const int64_t head : heads) {
        to = std::copy_n(all.data() + r * columns + head * width, width, to);
      }
    }
    return absl::OkStatus();
  }

  int64_t head_width() const { return columns / all_heads; }
  int64_t elements() const { return rows * std::ssize(heads) * head_width(); }

  std::string name;
  std::vector<int64_t> heads;
  int64_t all_heads, rows, columns;
};

// Cuts rows of the input projections, whose weights and biases are one row for this, and columns of
// the output projection.
ComputedWeights CutWeights(const ModelDescription& pruned, const WeightSource& whole) {
  ComputedWeights cut;
  for (int64_t set = 0; set < pruned.weight_sets(); ++set) {
    LayerShape layer = pruned.layer_shape(set);
    const std::vector<int64_t> heads = layer.attention.head_numbers;
    if (heads.empty()) continue;
    layer.attention.heads = pruned.layer.attention.heads;
    const auto add = [&](absl::string_view weight, int64_t rows, int64_t columns) {
      const std::string name = absl::StrCat("layer.", set, ".", weight);
      if (!whole.Has(name)) return;
      const KeptHeads kept = {name, heads, layer.attention.heads, rows, columns};
      cut[name] = {kept.elements(), kept};
    };
    add("output.weight", layer.projected_width(), layer.context_width());
    for (const ModelPart& part : InputProjections(layer)) {
      add(part.name + ".weight", 1, (part.out * part.in).value());
      add(part.name + ".bias", 1, part.out.value());
    }
  }
  return cut;
}

// Returns the heads that the entry of a layer names, ascending.
std::vector<int64_t> ReadHeads(const std::string& layer, const Json& list, int64_t heads,
                               Problems& problems) {
  std::vector<int64_t> read;
  if (!list.is_array()) {
    problems.Add("layer ", layer, ": expected a list of heads; got ", Describe(list));
    return read;
  }
  for (const Json& element : list) {
    const std::optional<int64_t> head = AsCount(element);
    if (!head || *head >= heads) {
      problems.Add("layer ", layer, ": expected heads 0..", heads - 1, "; got ", Describe(element));
    } else if (std::find(read.begin(), read.end(), *head) != read.end()) {
      problems.Add("layer ", layer, ": expected each head once; got ", *head, " twice");
    } else {
      read.push_back(*head);
    }
  }
  std::sort(read.begin(), read.end());
  return read;
}

// Returns the heads to remove from each layer.
std::vector<std::vector<int64_t>> ReadLayers(const Json& json, const ModelDescription& model,
                                             Problems& problems) {
  std::vector<std::vector<int64_t>> layers(model.layers);
  if (!json.is_object()) {
    problems.Add("expected an object from layers to lists of heads; got ", Describe(json));
    return layers;
  }
  for (const auto& [key, list] : json.items()) {
    int64_t layer = -1;
    if (!absl::SimpleAtoi(key, &layer) || absl::StrCat(layer) != key || layer < 0 ||
        layer >= model.layers) {
      problems.Add("expected layers 0..", model.layers - 1, "; got ", Quoted(key));
      continue;
    }
    layers[layer] = ReadHeads(key, list, model.layer.attention.heads, problems);
  }
  return layers;
}

void PruneSets(const std::vector<std::vector<int64_t>>& layers, ModelDescription& model,
               Problems& problems) {
  model.SplitShapes();
  std::vector<int64_t> first_layer(model.weight_sets(), -1);
  for (int64_t i = 0; i < model.layers; ++i) {
    int64_t& first = first_layer[model.weight_set(i)];
    if (first < 0) {
      first = i;
      LayerShape& shape = model.layer_shapes[model.weight_set(i)];
      shape = WithoutHeads(std::move(shape), layers[i]);
    } else if (layers[i] != layers[first]) {
      problems.Add("expected the same heads for layers ", first, " and ", i,
                   " (they share their weights); got ", absl::StrJoin(layers[first], " "), " and ",
                   absl::StrJoin(layers[i], " "));
    }
  }
}

}  // namespace

absl::Status PruneHeads(const std::string& file, Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonFile(file));
  ModelDescription model = checkpoint.description;
  Problems problems(file);
  const std::string reason = WhyNotPrunable(model.layer);
  if (!reason.empty()) {
    problems.Add("cannot prune heads of this model: ", reason);
    return problems.ToStatus();
  }
  const std::vector<std::vector<int64_t>> layers = ReadLayers(json, model, problems);
  if (problems.empty()) PruneSets(layers, model, problems);
  if (!problems.empty()) return problems.ToStatus();
  ComputedWeights cut = CutWeights(model, *checkpoint.weights);
  checkpoint.weights = WithComputed(std::move(cut), std::move(checkpoint.weights));
  checkpoint.description = std::move(model);
  return absl::OkStatus();
}

}  // namespace attendant
