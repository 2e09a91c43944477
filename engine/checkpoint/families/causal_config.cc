#include <utility>

#include "absl/algorithm/container.h"
#include "engine/checkpoint/families/bounds.h"
#include "engine/checkpoint/families/config_parts.h"

namespace attendant {
namespace {

constexpr int64_t kFirstWindowed = 28;
constexpr int64_t kPeriod = 6;

void ReadKeyValueHeads(const Keys& keys, ConfigReader& config, AttentionBlockShape& attention) {
  const int64_t heads = attention.heads, shared = config.Integer(keys, {1, heads}, heads);
  if (heads % shared != 0) {
    config.Refuse(keys.front(), ": expected a divisor of the ", heads, " query heads; got ",
                  shared);
  } else if (shared < heads) {
    attention.key_value_heads = shared;
  }
}

// A causal window of w tokens, with the query's own, is one that reaches w - 1 tokens back;
// without the mask the library lets it reach w tokens to either side, or half as many.
void SetCausal(bool causal, const Family& family, AttentionBlockShape& attention) {
  if (attention.causal == causal) return;
  attention.causal = causal;
  int64_t& window = attention.window;
  if (window == 0) return;
  if (family.halves_window) {
    window = causal ? 2 * window - 1 : (window + 1) / 2;
  } else {
    window += causal ? -1 : 1;
  }
}

// Returns which layers have a window: newer configs list all layers, older ones name the first.
std::vector<bool> ReadCausalWindows(const ConfigKeys& keys, int64_t layers, ConfigReader& config) {
  const int64_t first =
      keys.first_windowed.empty()
          ? 0
          : config.Integer(keys.first_windowed, {0, kLayerRange.highest}, kFirstWindowed);
  std::vector<bool> windowed(layers);
  const int64_t period =
      keys.last_of_period.empty() ? 0 : config.Integer(keys.last_of_period, kLayerRange, kPeriod);
  for (int64_t i = 0; i < layers; ++i) {
    windowed[i] = period > 0 ? (i + 1) % period != 0 : i >= first;
  }
  return ReadWindowedLayers(keys.layer_kinds, std::move(windowed), config);
}

void ReadWindow(const Family& family, ConfigReader& config, ModelDescription& model) {
  const ConfigKeys& keys = family.keys;
  const bool in_use =
      keys.has_causal_window.empty() || config.Boolean(keys.has_causal_window, false);
  const bool is_none =
      config.json().contains(keys.causal_window.front()) && !config.Has(keys.causal_window);
  const std::vector<bool> windowed = ReadCausalWindows(keys, model.layers, config);
  const bool has_any = absl::c_linear_search(windowed, true);
  if (!in_use || is_none) {
    // Layers are listed as windowed for nothing; without a list they are not.
    if (has_any && config.Has(keys.layer_kinds)) {
      config.Refuse(keys.causal_window.front(), ": missing; ", keys.layer_kinds.front(),
                    " lists layers with a window");
    }
    return;
  }
  const int64_t width =
      config.Integer(keys.causal_window, {2, kPositionRange.highest}, family.causal_window);
  if (!has_any) return;
  model.layer.attention.window = width - 1;
  RotaryShape& rotary = model.layer.relative_positions.rotary;
  const RotaryShape local =
      ReadRotary(family, /*is_local=*/true, model.layer.attention.key_width, config);
  if (!absl::c_linear_search(windowed, false)) {
    rotary = local;
    return;
  }
  model.SplitShapes();
  for (size_t i = 0; i < model.layer_shapes.size(); ++i) {
    LayerShape& layer = model.layer_shapes[i];
    if (windowed[i]) {
      layer.relative_positions.rotary = local;
    } else {
      layer.attention.window = 0;
    }
  }
}

}  // namespace

void ReadCausalAttention(const Family& family, ConfigReader& config, ModelDescription& model) {
  AttentionBlockShape& attention = model.layer.attention;
  attention.query_key_norms = family.query_key_norms;
  if (!family.keys.key_value_heads.empty()) {
    ReadKeyValueHeads(family.keys.key_value_heads, config, attention);
  }
  if (!family.is_causal) return;
  attention.causal = true;
  if (!family.keys.causal_window.empty()) ReadWindow(family, config, model);
  // Three ways to say that a model was trained on without the mask.
  const bool causal = config.Boolean({"is_causal"}, true) && config.Boolean({"is_decoder"}, true) &&
                      !config.Boolean({"use_bidirectional_attention"}, false);
  model.ChangeShapes([&](LayerShape& layer) { SetCausal(causal, family, layer.attention); });
}

absl::Status ChooseCausality(const std::string& folder, CausalChoice choice, const Family& family,
                             ModelDescription& model) {
  if (choice == CausalChoice::kAsFiles) return absl::OkStatus();
  if (!family.is_causal) {
    return InvalidArgument(folder, ": causal: not supported: models of the family ", family.name,
                           " are never causal; leave the key out");
  }
  model.ChangeShapes([&](LayerShape& layer) {
    SetCausal(choice == CausalChoice::kCausal, family, layer.attention);
  });
  return absl::OkStatus();
}

}  // namespace attendant
