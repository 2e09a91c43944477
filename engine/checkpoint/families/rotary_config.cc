#include "engine/checkpoint/families/rotary_config.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace attendant {
namespace {

constexpr float kHighestTheta = 1e9f;
constexpr float kHighestFactor = 1e4f;

// The ways to scale positions so that longer sequences than those of the training have angles like
// theirs. Other ways are refused. Some of them make the angles of all tokens depend on the longest
// sequence of a batch.
enum class Scaling {
  kNone,
  kLinear,  // positions are divided by the factor
  kNtk,     // slow pairs are scaled more than fast ones: kexue.fm/archives/9706, equation 6
};

constexpr Named<Scaling> kScalings[] = {
    {"default", Scaling::kNone}, {"linear", Scaling::kLinear}, {"ntk", Scaling::kNtk}};

struct Rotation {
  float theta;
  float stretch = 1;
};

// Reads an object that may state the base and how positions are scaled. `fallback` has what counts
// without it. Only the files that models' authors publish have "type", and know "ntk".
Rotation ReadRotation(const Json& object, const Keys& type_keys, int64_t rotary_width,
                      Rotation fallback, Problems& problems) {
  ConfigReader parameters(object, problems);
  // The last one only matters to ways that are refused.
  Keys known = {"rope_theta", "factor", "partial_rotary_factor",
                "original_max_position_embeddings"};
  known.insert(known.begin(), type_keys.begin(), type_keys.end());
  parameters.AllowOnly(known);
  Rotation read = fallback;
  read.theta = parameters.Number({"rope_theta"}, kHighestTheta, fallback.theta);
  if (parameters.Number({"partial_rotary_factor"}, kHighestFactor, 1.0f) != 1.0f) {
    problems.Add("partial_rotary_factor: expected 1, as all columns of a head are rotated");
  }
  if (!parameters.Has(type_keys)) return read;
  const auto scaling = parameters.Choice<Scaling>(
      type_keys, absl::MakeConstSpan(kScalings).first(type_keys.size() > 1 ? 3 : 2),
      Scaling::kNone);
  read.stretch = 1;
  if (scaling == Scaling::kNone) return read;
  const double factor = parameters.Number({"factor"}, kHighestFactor);
  if (factor < 1) {
    problems.Add(absl::StrCat("expected a factor of rotary positions from 1, found ", factor));
  } else if (scaling == Scaling::kLinear) {
    read.stretch = static_cast<float>(factor);
  } else {
    read.theta = static_cast<float>(read.theta * factor);
    read.stretch = static_cast<float>(std::pow(factor, 2 / static_cast<double>(rotary_width)));
  }
  return read;
}

// Reads what the object `kinds` says of one kind of layers.
Rotation ReadKind(const Json& kinds, const std::string& key, const char* kind, int64_t rotary_width,
                  Rotation fallback, Problems& problems) {
  if (!kinds.contains(kind) || !kinds[kind].is_object()) {
    problems.Add(absl::StrCat(key, ": expected an object with '", kGlobalLayer, "' and '",
                              kLocalLayer, "', found ", Describe(kinds)));
    return fallback;
  }
  return ReadRotation(kinds[kind], {"rope_type"}, rotary_width, fallback, problems);
}

}  // namespace

RelativePositionShape ReadRotary(const Family& family, int64_t head_width, ConfigReader& config,
                                 Problems& problems) {
  const ConfigKeys& keys = family.keys;
  RelativePositionShape shape = family.relative_positions;
  shape.rotary_theta = config.Number(keys.rotary_theta, kHighestTheta, shape.rotary_theta);
  const float fraction = config.Number(keys.rotary_fraction, 1, 1.0f);
  shape.rotary_width = static_cast<int64_t>(static_cast<double>(head_width) * fraction);
  if (config.Boolean(keys.rotary_interleaved, false)) {
    shape.rotary_pairs = RotaryPairs::kInterleaved;
  }
  if (shape.rotary_width < 2 || shape.rotary_width % 2 != 0 || shape.rotary_theta <= 0) {
    problems.Add(
        absl::StrCat("expected a positive rotary base, and an even number of rotary columns in a "
                     "head, found base ",
                     shape.rotary_theta, " and ", shape.rotary_width, " columns"));
    return shape;
  }
  if (!keys.window.empty()) return shape;  // see ReadLayerRotations
  if (const Json* parameters = config.Object(keys.rotary_parameters); parameters != nullptr) {
    const Rotation read =
        ReadRotation(*parameters, {"rope_type", "type"}, shape.rotary_width,
                     {.theta = shape.rotary_theta, .stretch = shape.rotary_stretch}, problems);
    shape.rotary_theta = read.theta;
    shape.rotary_stretch = read.stretch;
  }
  if (shape.rotary_theta <= 0) {
    problems.Add(absl::StrCat("expected a positive rotary base, found ", shape.rotary_theta));
  }
  return shape;
}

LayerRotations ReadLayerRotations(const Family& family, const RelativePositionShape& shape,
                                  ConfigReader& config, Problems& problems) {
  const ConfigKeys& keys = family.keys;
  const int64_t width = shape.rotary_width;
  Rotation global = {shape.rotary_theta};
  Rotation local = {
      config.Number(keys.local_rotary_theta, kHighestTheta, family.local_rotary_theta)};
  if (const Json* kinds = config.Object(keys.rotary_parameters); kinds != nullptr) {
    const std::string& key = keys.rotary_parameters.front();
    global = ReadKind(*kinds, key, kGlobalLayer, width, global, problems);
    local = ReadKind(*kinds, key, kLocalLayer, width, local, problems);
  }
  // The library writes it over what the parameters of both kinds say, and reads no "type" in it.
  if (const Json* scaling = config.Object(keys.rotary_scaling); scaling != nullptr) {
    global = ReadRotation(*scaling, {"rope_type"}, width, global, problems);
    local = ReadRotation(*scaling, {"rope_type"}, width, local, problems);
  }
  if (global.theta <= 0 || local.theta <= 0) {
    problems.Add(
        absl::StrCat("expected positive rotary bases, found ", global.theta, " and ", local.theta));
  }
  if (global.stretch != local.stretch) {
    problems.Add(absl::StrCat("expected one factor of rotary positions for all layers, found ",
                              global.stretch, " and ", local.stretch));
  }
  return {global.theta, local.theta, global.stretch};
}

}  // namespace attendant
