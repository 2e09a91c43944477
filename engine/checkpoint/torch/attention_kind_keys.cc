#include "engine/checkpoint/torch/attention_kind_keys.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/checkpoint/torch/collaborative_heads.h"

namespace attendant {
namespace {

constexpr float kHighestScoreScale = 1e6f;
constexpr int64_t kMostListed = 65'536;  // pairs of blocks, or blocks

// A weight, by its name without "layer.<i>.", and the member that holds the name of its tensor.
struct KindTensor {
  absl::string_view weight;
  std::string AttentionKindKeys::*name;
};

constexpr KindTensor kTensors[] = {{"score", &AttentionKindKeys::score},
                                   {"key_mixing", &AttentionKindKeys::key_mixing},
                                   {"value_mixing", &AttentionKindKeys::value_mixing},
                                   {"mixing", &AttentionKindKeys::mixing},
                                   {"content_bias", &AttentionKindKeys::content_bias}};

std::string OfLayer(const std::string& name, absl::string_view layer) {
  return absl::StrReplaceAll(name, {{"{layer}", layer}});
}

void ReadWindow(ConfigReader& config, AttentionBlockShape& attention) {
  if (!config.Has({"window"})) return;
  attention.window = config.Integer({"window"}, kPositionRange);
  AttentionPattern& pattern = attention.pattern;
  pattern.block = config.Integer({"window_block"}, kPositionRange, 1);
  pattern.first_global = config.Integer({"first_global"}, {0, kPositionRange.highest}, 0);
  pattern.last_global = config.Integer({"last_global"}, {0, kPositionRange.highest}, 0);
  const IntegerRange blocks = {0, (kPositionRange.highest - 1) / pattern.block};
  std::vector<BlockPair> pairs;
  for (const auto& [query, key] : config.IntegerPairs({"block_pairs"}, blocks, kMostListed)) {
    pairs.push_back({query, key});
  }
  pattern.listed =
      BlockLists(std::move(pairs), config.Integers({"global_blocks"}, blocks, kMostListed));
}

// Sets into how many rows keys and values are mixed, and of how many places, from the shape of the
// first layer's tensor.
void DescribeMixing(const AttentionKindKeys& read, LayerShape& layer, WeightBinder& binder) {
  if (layer.attention.kind != AttentionKind::kLinformer) return;
  const std::string name = OfLayer(read.key_mixing, "0");
  const FileTensor* tensor = binder.FindMatrix(name);
  if (tensor == nullptr || std::max(tensor->shape[0], tensor->shape[1]) > kPositionRange.highest) {
    binder.RefuseTensor(name, "a matrix of up to ", kPositionRange.highest, " rows and columns");
    return;
  }
  layer.attention.linformer.keys = tensor->shape[0];
  layer.attention.linformer.positions = tensor->shape[1];
}

float DefaultScale(const AttentionKindKeys& read, const LayerShape& layer) {
  const AttentionKind kind = layer.attention.kind;
  if (kind != AttentionKind::kSoftmax && kind != AttentionKind::kLinformer) return 1;
  if (!read.collaborates()) return 1 / std::sqrt(static_cast<float>(layer.attention.key_width));
  return std::sqrt(static_cast<float>(layer.attention.heads) /
                   static_cast<float>(ColumnsInFile(read, layer)));
}

}  // namespace

AttentionKindKeys ReadAttentionKind(ConfigReader& config, AttentionBlockShape& attention) {
  AttentionKindKeys read;
  attention.kind =
      config.Choice<AttentionKind>({"attention"}, kAttentionKindNames, AttentionKind::kSoftmax);
  if (config.Has({"score_scale"})) {
    read.score_scale = config.Number({"score_scale"}, kHighestScoreScale);
  }
  if (ScoresPairs(attention.kind)) ReadWindow(config, attention);
  if (attention.kind == AttentionKind::kAdditive) read.score = config.Text({"score"});
  if (attention.kind == AttentionKind::kLinformer) {
    read.key_mixing = config.Text({"key_mixing"});
    read.value_mixing = config.Text({"value_mixing"});
  }
  if (attention.kind == AttentionKind::kSoftmax) read.mixing = config.Text({"mixing"}, "");
  if (read.collaborates()) read.content_bias = config.Text({"content_bias"}, "");
  return read;
}

int64_t CollaborativeWidth(const AttentionKindKeys& read, int64_t heads, int64_t columns,
                           const std::string& source, WeightBinder& binder) {
  const int64_t width = columns + read.own_columns();
  if (width <= kHiddenSizeRange.highest / heads) return width;
  binder.Refuse(source, ": expected up to ", kHiddenSizeRange.highest / heads, " outputs for ",
                heads, " heads that share them; got ", columns);
  return 1;
}

int64_t ColumnsInFile(const AttentionKindKeys& read, const LayerShape& layer) {
  return read.collaborates() ? layer.attention.key_width - read.own_columns() : layer.key_columns();
}

void DescribeAttentionKind(const AttentionKindKeys& read, LayerShape& layer, WeightBinder& binder) {
  DescribeMixing(read, layer, binder);
  layer.attention.score_scale = read.score_scale.value_or(DefaultScale(read, layer));
}

std::vector<WeightSpec> ListWeightsInFile(const AttentionKindKeys& read,
                                          const ModelDescription& description) {
  std::vector<WeightSpec> weights = ListWeights(description);
  if (!read.collaborates()) return weights;
  const LayerShape& layer = description.layer;
  const int64_t columns = ColumnsInFile(read, layer);
  for (WeightSpec& spec : weights) {
    if (absl::StrContains(spec.name, ".query.") || absl::StrContains(spec.name, ".key.")) {
      spec.shape[0] = columns;
    }
  }
  for (int64_t i = 0; i < description.weight_sets(); ++i) {
    weights.push_back({absl::StrCat("layer.", i, ".mixing"), {layer.attention.heads, columns}});
    if (read.content_bias.empty()) continue;
    weights.push_back(
        {absl::StrCat("layer.", i, ".content_bias"), {layer.attention.heads, layer.hidden_size}});
  }
  return weights;
}

bool BindAttentionKind(const AttentionKindKeys& read, const WeightSpec& spec,
                       WeightBinder& binder) {
  const std::vector<std::string> parts = absl::StrSplit(spec.name, '.');  // layer, i, what
  if (parts.size() != 3 || parts[0] != "layer") return false;
  for (const KindTensor& tensor : kTensors) {
    if (parts[2] != tensor.weight) continue;
    binder.Bind(spec, {{OfLayer(read.*tensor.name, parts[1])}});
    return true;
  }
  return false;
}

std::unique_ptr<WeightSource> WithAttentionKind(const AttentionKindKeys& read,
                                                const ModelDescription& description,
                                                std::unique_ptr<WeightSource> weights) {
  if (!read.collaborates()) return weights;
  return SplitCollaborativeHeads(description, !read.content_bias.empty(), std::move(weights));
}

}  // namespace attendant
