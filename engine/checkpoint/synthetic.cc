#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"
#include "engine/checkpoint/embedded.h"
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

// Whose linear layers have no biases.
bool IsOfMixture(absl::string_view name) {
  return absl::StrContains(name, ".router.") || absl::StrContains(name, ".expert.");
}

class SyntheticWeights : public WeightSource {
 public:
  SyntheticWeights(const ModelDescription& description, bool has_biases, uint64_t seed)
      : seed_(seed) {
    for (WeightSpec& spec : ListWeights(description)) {
      if (spec.optional && (!has_biases || IsOfMixture(spec.name))) continue;
      elements_.emplace(std::move(spec.name), *ElementCount(spec.shape));
    }
  }

  bool Has(absl::string_view name) const override { return elements_.contains(name); }

  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    const auto elements = elements_.find(name);
    if (elements == elements_.end()) {
      return absl::NotFoundError(absl::StrCat("synthetic model has no tensor '", name, "'"));
    }
    if (static_cast<int64_t>(target.size()) != elements->second) {
      return InvalidArgument("synthetic model: tensor '", name, "' has ", elements->second,
                             " elements, the target ", target.size());
    }
    uint64_t counter = KeyOf(seed_, name);
    const bool is_norm_weight = absl::EndsWith(name, "norm.weight");
    for (float& value : target) {
      const float x = CentredSum(Mix(counter += kGolden));
      value = is_norm_weight ? 1.0f + x * kNormScale : x * kScale;
    }
    return absl::OkStatus();
  }

 private:
  const uint64_t seed_;
  absl::flat_hash_map<std::string, int64_t> elements_;
};

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

enum class Pooled { kNone, kMean, kNormalizedMean, kNormalizedLast, kPooler };

struct SyntheticModel {
  const char* name;
  int64_t layers, hidden_size, heads, feed_forward_width;
  EmbeddingShape embeddings;  // a vocabulary of 0 means none
  Pooled pooled = Pooled::kNone;
  float norm_epsilon = 1e-12f;
  NormPlacement norm_placement = NormPlacement::kPost;
  void (*specialize)(ModelDescription& model) = nullptr;  // describes what BERT does not have
  bool has_biases = true;
};

EmbeddingShape BertEmbeddings(int64_t vocabulary, int64_t positions, int64_t token_types) {
  EmbeddingShape shape;
  shape.vocabulary = vocabulary;
  shape.positions = positions;
  shape.token_types = token_types;
  return shape;
}

EmbeddingShape RobertaEmbeddings() {
  EmbeddingShape shape = BertEmbeddings(50265, 514, 1);
  shape.position_rule = PositionRule::kCountNotPadding;
  shape.first_position = 2;
  return shape;
}

// Layers of decoders: RMS norms, also of the queries and keys of each head, grouped keys and
// values, rotary positions, and a gate.
void MakeDecoder(int64_t key_value_heads, int64_t head_width, float theta, Activation activation,
                 ModelDescription& model) {
  AttentionBlockShape& attention = model.layer.attention;
  attention.key_value_heads = key_value_heads;
  attention.key_width = attention.value_width = head_width;
  attention.score_scale = 1 / std::sqrt(static_cast<float>(head_width));
  attention.query_key_norms = QueryKeyNorms::kEachHead;
  model.layer.relative_positions.kind = RelativePositions::kRotary;
  model.layer.relative_positions.rotary = {RotaryFrequencies(head_width, theta)};
  model.layer.feed_forward.activation = activation;
  model.layer.feed_forward.has_gate = true;
  model.layer.norms.kind = NormKind::kRms;
  model.embeddings->has_norm = false;
}

void MakeQwen3(ModelDescription& model) {
  MakeDecoder(8, 128, 1e6f, Activation::kSilu, model);
  model.layer.attention.causal = true;
}

// Five of six layers have a window and a rotation of their own.
void MakeEmbeddingGemma(ModelDescription& model) {
  MakeDecoder(1, 256, 1e6f, Activation::kGeluTanh, model);
  model.layer.norms.kind = NormKind::kRmsPlusOne;
  model.layer.attention.window = 256;
  model.SplitShapes();
  for (size_t i = 0; i < model.layer_shapes.size(); ++i) {
    LayerShape& layer = model.layer_shapes[i];
    if ((i + 1) % 6 == 0) {
      layer.attention.window = 0;
    } else {
      layer.relative_positions.rotary = {RotaryFrequencies(256, 1e4f)};
    }
  }
  model.embeddings->word_scale = std::sqrt(768.0f);
  model.pooling->dense_width = 3072;
  model.pooling->output_width = 768;
}

// Every second layer has experts.
void MakeNomicMixture(ModelDescription& model) {
  model.layer.relative_positions.kind = RelativePositions::kRotary;
  model.layer.relative_positions.rotary = {RotaryFrequencies(64, 1e4f)};
  model.SplitShapes();
  model.layer.feed_forward.mixture = {.experts = 8, .per_token = 2};
  for (size_t i = 1; i < model.layer_shapes.size(); i += 2) {
    model.layer_shapes[i].feed_forward.mixture = model.layer.feed_forward.mixture;
  }
}

const std::vector<SyntheticModel>& Models() {
  static const auto& models = *new std::vector<SyntheticModel>{
      {"bert-base", 12, 768, 12, 3072, BertEmbeddings(30522, 512, 2), Pooled::kPooler},
      {"bert-large", 24, 1024, 16, 4096, BertEmbeddings(30522, 512, 2), Pooled::kPooler},
      {"minilm-l6", 6, 384, 12, 1536, BertEmbeddings(30522, 512, 2), Pooled::kNormalizedMean},
      {"minilm-l12", 12, 384, 12, 1536, BertEmbeddings(30522, 512, 2), Pooled::kNormalizedMean},
      {"distilbert", 6, 768, 12, 3072, BertEmbeddings(30522, 512, 0), Pooled::kMean},
      {"roberta-base", 12, 768, 12, 3072, RobertaEmbeddings(), Pooled::kMean, 1e-5f},
      {"vit-base", 12, 768, 12, 3072, {}, Pooled::kNone, 1e-12f, NormPlacement::kPre},
      {"qwen3-0.6b", 28, 1024, 16, 3072, BertEmbeddings(151669, 0, 0), Pooled::kNormalizedLast,
       1e-6f, NormPlacement::kPre, MakeQwen3, /*has_biases=*/false},
      {"embeddinggemma-300m", 24, 768, 3, 1152, BertEmbeddings(262144, 0, 0),
       Pooled::kNormalizedMean, 1e-6f, NormPlacement::kSandwich, MakeEmbeddingGemma,
       /*has_biases=*/false},
      {"nomic-v2-moe", 12, 768, 12, 3072, BertEmbeddings(250048, 0, 1), Pooled::kNormalizedMean,
       1e-5f, NormPlacement::kPost, MakeNomicMixture},
      {"tiny", 2, 32, 4, 64, BertEmbeddings(100, 64, 2), Pooled::kNormalizedMean},
      {kWordsModel, 2, 16, 2, 32, BertEmbeddings(std::ssize(Words()), 64, 2),
       Pooled::kNormalizedMean},
  };
  return models;
}

std::optional<PoolingDescription> DescribePooling(const SyntheticModel& model) {
  if (model.pooled == Pooled::kNone) return std::nullopt;
  PoolingDescription pooling;
  if (model.pooled == Pooled::kPooler) {
    pooling.modes = {PoolingMode::kFirstToken};
    pooling.dense_width = model.hidden_size;
    pooling.dense_activation = Activation::kTanh;
  } else {
    const bool is_last = model.pooled == Pooled::kNormalizedLast;
    pooling.modes = {is_last ? PoolingMode::kLastToken : PoolingMode::kMean};
    pooling.normalize = is_last || model.pooled == Pooled::kNormalizedMean;
  }
  return pooling;
}

ModelDescription Describe(const SyntheticModel& model) {
  ModelDescription description;
  description.family = absl::StrCat("synthetic:", model.name);
  description.layers = model.layers;
  LayerShape& layer = description.layer;
  layer.hidden_size = model.hidden_size;
  layer.attention.heads = model.heads;
  layer.attention.key_width = layer.attention.value_width = model.hidden_size / model.heads;
  layer.attention.score_scale = 1 / std::sqrt(static_cast<float>(layer.attention.key_width));
  layer.feed_forward.width = model.feed_forward_width;
  layer.norms.placement = model.norm_placement;
  layer.norms.epsilon = model.norm_epsilon;
  if (model.embeddings.vocabulary > 0) {
    description.embeddings = model.embeddings;
    description.embeddings->width = model.hidden_size;
    description.embeddings->norm_epsilon = model.norm_epsilon;
  }
  description.has_exit_norm = layer.norms.are_first();
  description.pooling = DescribePooling(model);
  if (model.specialize != nullptr) model.specialize(description);
  return description;
}

}  // namespace

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
    checkpoint.description = Describe(model);
    checkpoint.weights =
        std::make_unique<SyntheticWeights>(checkpoint.description, model.has_biases, seed);
    if (name == kWordsModel) {
      checkpoint.tokenization.files["vocab.txt"] = absl::StrJoin(Words(), "\n");
    }
    return checkpoint;
  }
  return absl::NotFoundError(absl::StrCat("no synthetic model '", name, "'; there are ",
                                          absl::StrJoin(SyntheticModelNames(), ", ")));
}

}  // namespace attendant
