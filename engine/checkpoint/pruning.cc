#include "engine/checkpoint/pruning.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/json.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/layer_parts.h"
#include "engine/model/pruned_heads.h"

namespace attendant {
namespace {

// The way in which a tensor [rows, columns] is divided among the heads: each has some rows, or some
// columns.
struct Cut {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t head_rows = 0;     // per head; 0 if no rows are removed
  int64_t head_columns = 0;  // per head; 0 if no columns are removed
};

// Reads the tensors of a source without the rows and columns of pruned heads. Not thread-safe.
class PrunedWeights : public WeightSource {
 public:
  PrunedWeights(ModelDescription description, std::unique_ptr<WeightSource> whole)
      : description_(std::move(description)), whole_(std::move(whole)) {}

  bool Has(absl::string_view name) const override { return whole_->Has(name); }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override;
  // Tables are not cut.
  absl::StatusOr<bool> ReadStored(absl::string_view name, DataType type,
                                  absl::Span<char> target) override {
    return whole_->ReadStored(name, type, target);
  }

 private:
  static Cut CutOf(absl::string_view tensor, const LayerShape& layer);
  static void Copy(const Cut& cut, const LayerShape& pruned, const float* from, float* to);

  const ModelDescription description_;
  const std::unique_ptr<WeightSource> whole_;
  std::vector<float> buffer_;
};

Cut PrunedWeights::CutOf(absl::string_view tensor, const LayerShape& layer) {
  if (tensor == "output.weight") {
    return {.rows = layer.projected_width(),
            .columns = layer.context_width(),
            .head_columns = layer.attention.value_width};
  }
  for (const ModelPart& part : InputProjections(layer)) {
    if (!absl::ConsumePrefix(&tensor, part.name + ".")) continue;
    const int64_t out = part.out.value(), in = part.in.value();
    return {.rows = out,
            .columns = tensor == "weight" ? in : 1,
            .head_rows = out / layer.attention.heads};
  }
  return {};
}

void PrunedWeights::Copy(const Cut& cut, const LayerShape& pruned, const float* from, float* to) {
  if (cut.head_rows > 0) {
    for (const int64_t head : pruned.attention.head_numbers) {
      const int64_t count = cut.head_rows * cut.columns;
      to = std::copy_n(from + head * count, count, to);
    }
    return;
  }
  for (int64_t r = 0; r < cut.rows; ++r, from += cut.columns) {
    for (const int64_t head : pruned.attention.head_numbers) {
      to = std::copy_n(from + head * cut.head_columns, cut.head_columns, to);
    }
  }
}

absl::Status PrunedWeights::Read(absl::string_view name, absl::Span<float> target) {
  absl::string_view tensor = name;
  int64_t set = 0;
  if (!absl::ConsumePrefix(&tensor, "layer.") ||
      !absl::SimpleAtoi(tensor.substr(0, tensor.find('.')), &set)) {
    return whole_->Read(name, target);
  }
  const LayerShape& pruned = description_.layer_shape(set);
  LayerShape whole = pruned;
  whole.attention.heads = description_.layer.attention.heads;
  const Cut cut = CutOf(tensor.substr(tensor.find('.') + 1), whole);
  if (pruned.attention.head_numbers.empty() || cut.head_rows + cut.head_columns == 0) {
    return whole_->Read(name, target);
  }
  buffer_.resize(cut.rows * cut.columns);
  RETURN_IF_ERROR(whole_->Read(name, absl::MakeSpan(buffer_)));
  Copy(cut, pruned, buffer_.data(), target.data());
  return absl::OkStatus();
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
  checkpoint.weights = std::make_unique<PrunedWeights>(model, std::move(checkpoint.weights));
  checkpoint.description = std::move(model);
  return absl::OkStatus();
}

}  // namespace attendant
