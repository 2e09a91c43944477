#include "tests/support/test_vectors.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace attendant::test_support {
namespace {

// Returns 1 + g / 4, the weights of a norm.
std::vector<float> GenerateGamma(int64_t count, int64_t seed) {
  std::vector<float> gamma = Generate(count, seed);
  for (float& value : gamma) value = 1.0f + value / 4.0f;
  return gamma;
}

// A model of one layer that has only its attention, of width 4.
ModelDescription AttentionOnly(int64_t heads, int64_t head_width, bool has_output_projection) {
  ModelDescription model;
  model.family = "test vector";
  model.layers = 1;
  model.layer.hidden_size = 4;
  model.layer.attention.heads = heads;
  model.layer.attention.key_width = head_width;
  model.layer.attention.value_width = head_width;
  model.layer.attention.score_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width)));
  model.layer.norms.placement = NormPlacement::kNone;
  model.layer.attention.has_output_projection = has_output_projection;
  return model;
}

TestVector WorkedExample(std::string name, float scale) {
  TestVector vector;
  vector.name = std::move(name);
  vector.description = AttentionOnly(1, 3, /*has_output_projection=*/false);
  vector.description.layer.attention.score_scale = scale;
  vector.weights = {{"layer.0.query.weight", {1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1}},
                    {"layer.0.key.weight", {0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0}},
                    {"layer.0.value.weight", {0, 0, 1, 1, 2, 3, 0, 1, 0, 0, 3, 0}}};
  vector.stage = AttendStage::kContext;
  vector.length = 3;
  vector.hidden_states = {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1};
  return vector;
}

// Queries, keys and values with biases, on a padded batch.
TestVector Bert(std::string name) {
  TestVector vector;
  vector.name = std::move(name);
  vector.description = AttentionOnly(2, 2, /*has_output_projection=*/false);
  int64_t seed = 2;
  for (const char* part : {"query", "key", "value"}) {
    const std::string prefix = std::string("layer.0.") + part;
    vector.weights[prefix + ".weight"] = Generate(16, seed++);
    vector.weights[prefix + ".bias"] = Generate(4, seed++);
  }
  vector.stage = AttendStage::kContext;
  vector.batch = 2;
  vector.length = 3;
  vector.hidden_states = Generate(24, 1);
  vector.attention_mask = {1, 1, 1, 1, 1, 0};
  return vector;
}

TestVector BertLayer(std::string name, NormPlacement placement, Activation activation,
                     float epsilon) {
  TestVector vector = Bert(std::move(name));
  LayerShape& layer = vector.description.layer;
  layer.attention.has_output_projection = true;
  layer.norms.placement = placement;
  layer.norms.epsilon = epsilon;
  layer.feed_forward.activation = activation;
  layer.feed_forward.width = 8;
  vector.weights["layer.0.output.weight"] = Generate(16, 8);
  vector.weights["layer.0.output.bias"] = Generate(4, 9);
  vector.weights["layer.0.attention_norm.weight"] = GenerateGamma(4, 10);
  vector.weights["layer.0.attention_norm.bias"] = Generate(4, 11);
  vector.weights["layer.0.feed_forward_in.weight"] = Generate(32, 12);
  vector.weights["layer.0.feed_forward_in.bias"] = Generate(8, 13);
  vector.weights["layer.0.feed_forward_out.weight"] = Generate(32, 14);
  vector.weights["layer.0.feed_forward_out.bias"] = Generate(4, 15);
  vector.weights["layer.0.feed_forward_norm.weight"] = GenerateGamma(4, 16);
  vector.weights["layer.0.feed_forward_norm.bias"] = Generate(4, 17);
  vector.stage.reset();
  return vector;
}

// torch.nn.MultiheadAttention: packed input projection, sequence first.
TestVector TorchAttention(std::string name, int64_t heads, bool has_bias) {
  TestVector vector;
  vector.name = std::move(name);
  vector.description = AttentionOnly(heads, 4 / heads, /*has_output_projection=*/true);
  const std::vector<float> in_proj_weight = Generate(48, 2);
  const std::vector<float> in_proj_bias = Generate(12, 4);
  int64_t row = 0;
  for (const char* part : {"query", "key", "value"}) {
    const std::string prefix = std::string("layer.0.") + part;
    vector.weights[prefix + ".weight"].assign(in_proj_weight.begin() + row * 4,
                                              in_proj_weight.begin() + (row + 4) * 4);
    if (has_bias) {
      vector.weights[prefix + ".bias"].assign(in_proj_bias.begin() + row,
                                              in_proj_bias.begin() + row + 4);
    }
    row += 4;
  }
  vector.weights["layer.0.output.weight"] = Generate(16, 3);
  if (has_bias) vector.weights["layer.0.output.bias"] = Generate(4, 5);
  vector.stage = AttendStage::kProjected;
  vector.batch = 2;
  vector.length = 3;
  const std::vector<float> sequence_first = Generate(24, 1);  // [S, B, E]
  for (int64_t b = 0; b < vector.batch; ++b) {
    for (int64_t s = 0; s < vector.length; ++s) {
      const auto begin = sequence_first.begin() + (s * vector.batch + b) * 4;
      vector.hidden_states.insert(vector.hidden_states.end(), begin, begin + 4);
    }
  }
  return vector;
}

// Heads with weights of their own, which are together wider than the input and are projected to
// less than its width.
TestVector SeparateHeads(std::string name) {
  TestVector vector;
  vector.name = std::move(name);
  vector.description = AttentionOnly(2, 2, /*has_output_projection=*/true);
  vector.description.layer.hidden_size = 3;
  vector.description.layer.attention.output_width = 2;
  int64_t seed = 2;
  for (const char* part : {"query", "key", "value"}) {
    const std::string prefix = std::string("layer.0.") + part;
    for (const int64_t head : {0, 1}) {
      const std::vector<float> weight = Generate(6, 10 * head + seed);
      const std::vector<float> bias = Generate(2, 10 * head + seed + 1);
      std::vector<float>& all = vector.weights[prefix + ".weight"];
      all.insert(all.end(), weight.begin(), weight.end());
      std::vector<float>& biases = vector.weights[prefix + ".bias"];
      biases.insert(biases.end(), bias.begin(), bias.end());
    }
    seed += 2;
  }
  vector.weights["layer.0.output.weight"] = Generate(8, 30);
  vector.weights["layer.0.output.bias"] = Generate(2, 31);
  vector.stage = AttendStage::kProjected;
  vector.batch = 2;
  vector.length = 3;
  vector.hidden_states = Generate(18, 1);
  return vector;
}

// One projection makes keys and values.
TestVector SharedKeyValue(std::string name) {
  TestVector vector;
  vector.name = std::move(name);
  vector.description = AttentionOnly(1, 4, /*has_output_projection=*/false);
  vector.weights = {{"layer.0.query.weight", Generate(16, 2)},
                    {"layer.0.key.weight", Generate(16, 4)}};
  vector.description.layer.attention.values_are_keys = true;
  vector.stage = AttendStage::kContext;
  vector.length = 3;
  vector.hidden_states = Generate(12, 1);
  return vector;
}

// Fast weights: no softmax and no scale.
TestVector Linear(std::string name, AttentionKind kind) {
  TestVector vector;
  vector.name = std::move(name);
  vector.description = AttentionOnly(1, 4, /*has_output_projection=*/false);
  vector.description.layer.attention.kind = kind;
  vector.description.layer.attention.score_scale = 1;
  vector.weights = {{"layer.0.query.weight", Generate(16, 2)},
                    {"layer.0.key.weight", Generate(16, 4)},
                    {"layer.0.value.weight", Generate(16, 6)}};
  vector.stage = AttendStage::kContext;
  vector.length = 3;
  vector.hidden_states = Generate(12, 1);
  return vector;
}

// Pairs of tokens at most 1 apart and, with a global token 0, all pairs with that token.
TestVector Window(std::string name, bool has_global_token) {
  TestVector vector = Bert(std::move(name));
  vector.batch = 1;
  vector.length = 8;
  vector.hidden_states = Generate(32, 1);
  vector.attention_mask.clear();
  for (int64_t s = 0; s < vector.length; ++s) {
    for (int64_t t = 0; t < vector.length; ++t) {
      const bool is_global = has_global_token && (s == 0 || t == 0);
      const bool is_near = std::abs(s - t) <= 1;
      vector.attention_bias.push_back(
          is_near || is_global ? 0.0f : -std::numeric_limits<float>::infinity());
    }
  }
  return vector;
}

// Positions that only the attention sees.
TestVector Relative(std::string name, RelativePositions kind) {
  TestVector vector;
  vector.name = std::move(name);
  vector.description = AttentionOnly(2, 2, /*has_output_projection=*/false);
  RelativePositionShape& relative = vector.description.layer.relative_positions;
  relative.kind = kind;
  relative.buckets = 32;
  relative.max_distance = 128;
  relative.rotary.frequencies = RotaryFrequencies(2, 1e4f);
  vector.weights = {{"layer.0.query.weight", Generate(16, 2)},
                    {"layer.0.key.weight", Generate(16, 4)},
                    {"layer.0.value.weight", Generate(16, 6)},
                    {"relative_positions", Generate(64, 7)}};
  vector.stage = AttendStage::kContext;
  vector.length = 4;
  vector.hidden_states = Generate(16, 1);
  return vector;
}

TestVector Expect(TestVector vector, std::vector<double> first_row, double sum,
                  double sum_of_squares) {
  vector.first_rows = {std::move(first_row)};
  vector.sum = sum;
  vector.sum_of_squares = sum_of_squares;
  return vector;
}

void AddWorkedExamples(std::vector<TestVector>& vectors) {
  vectors.push_back(WorkedExample("TV1 unscaled", 1.0f));
  vectors.back().first_rows = {{1.936621062, 6.683105308, 1.595068407},
                               {1.999993966, 7.963991595, .053976405},
                               {1.999704613, 7.759892255, .358389295}};
  vectors.push_back(WorkedExample("TV1 scaled", static_cast<float>(1.0 / std::sqrt(3.0))));
  vectors.back().first_rows = {{1.863874202, 6.319371012, 1.704188696},
                               {1.999109553, 7.814123505, .273472058},
                               {1.992555108, 7.479635592, .735877258}};
  vectors.push_back(WorkedExample("TV1 key 3 masked", 1.0f));
  vectors.back().attention_mask = {1, 1, 0};
  vectors.back().first_rows = {{1.880797078, 7.284782468, .357608766}};
}

void AddLayers(std::vector<TestVector>& vectors) {
  vectors.push_back(
      Expect(Bert("TV2"), {.76485570, .88767832, -.00705446, -.82642226}, .54608803, 11.35023106));
  TestVector block = BertLayer("TV3", NormPlacement::kPost, Activation::kGelu, 1e-12f);
  block.stage = AttendStage::kBlock;
  vectors.push_back(Expect(std::move(block), {-2.13989312, .77364805, -.08012987, 1.22765898},
                           -.74250728, 28.44904678));
  vectors.push_back(Expect(BertLayer("TV4", NormPlacement::kPost, Activation::kGelu, 1e-12f),
                           {-.54708337, -.01438845, 1.10111079, .96667593}, 7.39378132,
                           11.12390877));
  vectors.push_back(Expect(BertLayer("TV6", NormPlacement::kPre, Activation::kRelu, 1e-5f),
                           {.04212707, -3.29700294, .30610009, 3.83327153}, 7.58383942,
                           108.28945465));
  vectors.push_back(Expect(BertLayer("TV6b", NormPlacement::kPost, Activation::kRelu, 1e-5f),
                           {-.55329167, -.05415333, 1.18600299, .92930203}, 7.4195323,
                           11.54397563));
}

void AddAttention(std::vector<TestVector>& vectors) {
  vectors.push_back(Expect(TorchAttention("TV5a", 2, false),
                           {-.09132727, -.59539912, -.17084249, .42404682}, -1.41583242,
                           3.38724943));
  vectors.push_back(Expect(TorchAttention("TV5b", 2, true),
                           {.30182899, .33160645, -1.21936329, .38637546}, .90301801, 16.01080528));
  vectors.push_back(Expect(TorchAttention("TV5c", 1, false),
                           {-.06441648, -.45047463, -.23128094, .45196827}, -1.05077363,
                           3.40700597));
  vectors.push_back(Expect(SeparateHeads("TV7"), {-.05659842, .25848664}, -1.16261535, .91122219));
  vectors.push_back(Expect(SharedKeyValue("TV10"), {-.33796603, -.03746062, -.68449302, .31153639},
                           -2.20530221, 1.72660195));
  vectors.push_back(Expect(Linear("TV14", AttentionKind::kCausalLinear),
                           {.70875659, -.80481547, 1.05625680, .08503829}, 2.19691919,
                           69.79318199));
  vectors.push_back(Expect(Linear("TV14b", AttentionKind::kLinear),
                           {1.87257704, -2.87124935, 3.05036576, -.24140271}, 1.16099776,
                           136.94698302));
  vectors.push_back(Expect(Window("TV16", false), {.54586354, 1.32362519, -.41496429, -.63355020},
                           .30838212, 16.59708082));
  vectors.push_back(Expect(Window("TV16b", true), {.77090998, .63178696, -.32282805, -.57930440},
                           1.00628399, 14.24931741));
  vectors.push_back(Expect(Relative("TV18", RelativePositions::kAlibi),
                           {.25951999, -.03338978, .59960204, .09818964}, 2.49502362, 1.37953726));
  vectors.push_back(Expect(Relative("TV19", RelativePositions::kRotary),
                           {.29396486, -.05753559, .42361196, .06869510}, 2.58969104, 1.14557875));
  TestVector unscaled = Relative("TV20", RelativePositions::kBuckets);
  unscaled.description.layer.attention.score_scale = 1;
  vectors.push_back(Expect(std::move(unscaled), {.36127760, -.19041519, .58053639, .11435937},
                           2.09144092, 2.22944552));
  vectors.push_back(Expect(Relative("TV20b", RelativePositions::kBuckets),
                           {.35949697, -.17550196, .49890245, .10497283}, 2.09906687, 1.90480451));
}

}  // namespace

std::vector<float> Generate(int64_t count, int64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((37 * i + 101 * seed) % 257 - 128) / 128.0f;
  }
  return values;
}

std::vector<TestVector> AllTestVectors() {
  std::vector<TestVector> vectors;
  AddWorkedExamples(vectors);
  AddLayers(vectors);
  AddAttention(vectors);
  return vectors;
}

}  // namespace attendant::test_support
