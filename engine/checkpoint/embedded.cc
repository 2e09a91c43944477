#include "engine/checkpoint/embedded.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/model_config.h"
#include "engine/checkpoint/files/computed_weights.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

// splitmix64 as a function of a counter, so that element i of a tensor needs no earlier element.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

uint64_t KeyOf(uint64_t seed, absl::string_view name) {
  uint64_t key = Mix(seed + kGolden);
  for (const char c : name) key = Mix(key ^ static_cast<unsigned char>(c)) + kGolden;
  return key;
}

// The sum of four 16-bit uniform numbers, centred: close to normal, and exact in float32.
float CentredSum(uint64_t bits) {
  const auto sum = static_cast<int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                        (bits >> 32 & 0xffff) + (bits >> 48));
  return static_cast<float>(sum - 2 * 0xffff);
}

constexpr float kSumDeviation = 37837.0f;  // 65536 / sqrt(3)
constexpr float kScale = 0.02f / kSumDeviation;
// A power of two, so that 1 + x * scale is rounded once, with or without a fused multiply-add.
constexpr float kNormScale = 0x1p-21f;

// Whether the weight belongs to a mixture of experts. Linear layers of mixtures have no biases.
bool IsOfMixture(absl::string_view name) {
  return absl::StrContains(name, ".router.") || absl::StrContains(name, ".expert.");
}

// Gives every weight the values that belong to the seed and its name.
ComputedWeights MakeWeights(const ModelDescription& description, bool has_biases, uint64_t seed) {
  ComputedWeights weights;
  for (const WeightSpec& spec : ListWeights(description)) {
    if (spec.optional && (!has_biases || IsOfMixture(spec.name))) continue;
    const bool is_norm_weight = absl::EndsWith(spec.name, "norm.weight");
    const auto fill = [=, key = KeyOf(seed, spec.name)](WeightSource&, absl::Span<float> target) {
      uint64_t counter = key;
      for (float& value : target) {
        const float x = CentredSum(Mix(counter += kGolden));
        value = is_norm_weight ? 1.0f + x * kNormScale : x * kScale;
      }
      return absl::OkStatus();
    };
    weights[spec.name] = {*ElementCount(spec.shape), fill};
  }
  return weights;
}

constexpr char kWordsModel[] = "words";  // which takes texts

// The lines of a vocab.txt as BERT's: words for a first try, and letters for all others.
std::vector<std::string> Words() {
  std::vector<std::string> words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",    "[MASK]", "hello",
                                    "world", "the",   "cat",   "sits",     "on",     "mat",
                                    "a",     "is",    "of",    "attention"};
  constexpr absl::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (const char letter : kLetters) {
    if (letter != 'a') words.emplace_back(1, letter);
    words.push_back(absl::StrCat("##", std::string(1, letter)));
  }
  for (const char mark : absl::string_view(".,;:!?'\"()-/")) words.emplace_back(1, mark);
  return words;
}

// A model of a published family.
struct SyntheticModel {
  const char* name;
  uint64_t layers, hidden_size, heads, feed_forward_width, vocabulary, positions;
  const char* config;  // the rest of its config.json
  std::optional<PoolingDescription> pooling = std::nullopt;
  bool has_biases = true;
};

constexpr char kBert[] = R"({"model_type": "bert"})";

std::vector<SyntheticModel> ListModels() {
  const auto pooler = [](int64_t width) {
    return PoolingDescription{.modes = {PoolingMode::kFirstToken},
                              .dense_width = width,
                              .dense_activation = Activation::kTanh};
  };
  const PoolingDescription mean = {.modes = {PoolingMode::kMean}};
  const PoolingDescription unit_mean = {.modes = {PoolingMode::kMean}, .normalize = true};
  const PoolingDescription unit_last = {.modes = {PoolingMode::kLastToken}, .normalize = true};
  const PoolingDescription unit_projection = {
      .modes = {PoolingMode::kMean}, .dense_width = 3072, .normalize = true, .output_width = 768};
  return {
      {"bert-base", 12, 768, 12, 3072, 30522, 512, kBert, pooler(768)},
      {"bert-large", 24, 1024, 16, 4096, 30522, 512, kBert, pooler(1024)},
      {"minilm-l6", 6, 384, 12, 1536, 30522, 512, kBert, unit_mean},
      {"minilm-l12", 12, 384, 12, 1536, 30522, 512, kBert, unit_mean},
      {"distilbert", 6, 768, 12, 3072, 30522, 512,
       R"({"model_type": "distilbert", "hidden_dim": 3072})", mean},
      {"roberta-base", 12, 768, 12, 3072, 50265, 514,
       R"({"model_type": "roberta", "type_vocab_size": 1, "layer_norm_eps": 1e-5})", mean},
      {"vit-base", 12, 768, 12, 3072, 0, 0, R"({"model_type": "vit"})"},
      {"qwen3-0.6b", 28, 1024, 16, 3072, 151669, 0,
       R"({"model_type": "qwen3", "num_key_value_heads": 8, "rope_theta": 1e6})", unit_last,
       /*has_biases=*/false},
      {"embeddinggemma-300m", 24, 768, 3, 1152, 262144, 0,
       R"({"model_type": "gemma3_text", "num_key_value_heads": 1, "sliding_window": 512,
           "use_bidirectional_attention": true})",
       unit_projection, /*has_biases=*/false},
      {"nomic-v2-moe", 12, 768, 12, 3072, 250048, 0,
       R"({"model_type": "nomic_bert", "type_vocab_size": 1, "layer_norm_epsilon": 1e-5,
           "activation_function": "gelu", "rotary_emb_base": 1e4, "num_experts": 8,
           "moe_every_n_layers": 2, "moe_top_k": 2})",
       unit_mean},
      {"tiny", 2, 32, 4, 64, 100, 64, kBert, unit_mean},
      {kWordsModel, 2, 16, 2, 32, Words().size(), 64, kBert, unit_mean},
  };
}

// Thread-safe.
const std::vector<SyntheticModel>& Models() {
  static const auto& models = *new std::vector<SyntheticModel>(ListModels());
  return models;
}

absl::StatusOr<ModelDescription> DescribeModel(const SyntheticModel& model) {
  const std::string name = absl::StrCat("synthetic:", model.name);
  Json config = Json::parse(model.config);
  config.update({{"num_hidden_layers", model.layers},
                 {"hidden_size", model.hidden_size},
                 {"num_attention_heads", model.heads},
                 {"intermediate_size", model.feed_forward_width},
                 {"vocab_size", model.vocabulary},
                 {"max_position_embeddings", model.positions}});
  ASSIGN_OR_RETURN(ModelConfig read, ReadModelConfig(config, name));
  read.description.family = name;
  read.description.pooling = model.pooling;
  return std::move(read.description);
}

}  // namespace

Checkpoint OpenWorkedExample() {
  Checkpoint checkpoint;
  ModelDescription& description = checkpoint.description;
  description.family = "worked-example";
  description.layers = 1;
  description.layer.hidden_size = 4;
  description.layer.attention.heads = 1;
  description.layer.attention.key_width = 3;
  description.layer.attention.value_width = 3;
  description.layer.attention.score_scale = 1;
  description.layer.norms.placement = NormPlacement::kNone;
  description.layer.attention.has_output_projection = false;
  // The article multiplies its inputs by [in, out] matrices; these are their transposes, [out, in].
  const std::pair<const char*, std::vector<float>> tensors[] = {
      {"layer.0.query.weight", {1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1}},
      {"layer.0.key.weight", {0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0}},
      {"layer.0.value.weight", {0, 0, 1, 1, 2, 3, 0, 1, 0, 0, 3, 0}},
  };
  ComputedWeights weights;
  for (const auto& [name, values] : tensors) {
    const auto copy = [values = values](WeightSource&, absl::Span<float> target) {
      std::copy(values.begin(), values.end(), target.begin());
      return absl::OkStatus();
    };
    weights[name] = {std::ssize(values), copy};
  }
  checkpoint.weights = WithComputed(std::move(weights), nullptr);
  return checkpoint;
}

std::vector<std::string> SyntheticModelNames() {
  std::vector<std::string> names;
  for (const SyntheticModel& model : Models()) names.emplace_back(model.name);
  return names;
}

absl::StatusOr<Checkpoint> OpenSynthetic(absl::string_view name_and_seed) {
  const size_t at = name_and_seed.find('@');
  const absl::string_view name = name_and_seed.substr(0, at);
  uint64_t seed = 0;
  if (at != absl::string_view::npos && !absl::SimpleAtoi(name_and_seed.substr(at + 1), &seed)) {
    return InvalidArgument("synthetic:", name_and_seed,
                           ": expected synthetic:<name>[@seed] with a seed in 0..2^64-1; got '",
                           name_and_seed.substr(at + 1), "'");
  }
  for (const SyntheticModel& model : Models()) {
    if (name != model.name) continue;
    Checkpoint checkpoint;
    ASSIGN_OR_RETURN(checkpoint.description, DescribeModel(model));
    checkpoint.weights =
        WithComputed(MakeWeights(checkpoint.description, model.has_biases, seed), nullptr);
    if (name == kWordsModel) {
      checkpoint.tokenization.files["vocab.txt"] = absl::StrJoin(Words(), "\n");
    }
    return checkpoint;
  }
  return absl::NotFoundError(absl::StrCat("no synthetic model '", name, "'; there are ",
                                          absl::StrJoin(SyntheticModelNames(), ", ")));
}

}  // namespace attendant
