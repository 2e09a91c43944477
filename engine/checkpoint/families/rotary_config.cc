#include "engine/checkpoint/families/rotary_config.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

constexpr float kHighestTheta = 1e9f;
constexpr float kHighestFactor = 1e4f;

// The ways to scale positions so that longer sequences than those of the training have angles like
// theirs. Other ways are refused: they make the angles of all tokens depend on the longest sequence
// of a batch.
enum class Scaling {
  kNone,
  kLinear,  // positions are divided by the factor
  kNtk,     // slow pairs are scaled more than fast ones: kexue.fm/archives/9706, equation 6
};

constexpr Named<Scaling> kScalings[] = {
    {"default", Scaling::kNone}, {"linear", Scaling::kLinear}, {"ntk", Scaling::kNtk}};

// Reads the object in which newer configs nest the scaling, and perhaps the base.
void ReadParameters(const Json& object, RelativePositionShape& shape, Problems& problems) {
  ConfigReader parameters(object, problems);
  parameters.AllowOnly({"rope_type", "type", "rope_theta", "factor"});
  shape.rotary_theta = parameters.Number({"rope_theta"}, kHighestTheta, shape.rotary_theta);
  const auto scaling = parameters.Choice<Scaling>({"rope_type", "type"}, kScalings, Scaling::kNone);
  if (scaling == Scaling::kNone) return;
  const double factor = parameters.Number({"factor"}, kHighestFactor);
  if (factor < 1) {
    problems.Add(absl::StrCat("expected a factor of rotary positions from 1, found ", factor));
  } else if (scaling == Scaling::kLinear) {
    shape.rotary_stretch = static_cast<float>(factor);
  } else {
    shape.rotary_theta = static_cast<float>(shape.rotary_theta * factor);
    shape.rotary_stretch =
        static_cast<float>(std::pow(factor, 2 / static_cast<double>(shape.rotary_width)));
  }
}

// Reads the base for one kind of layers from the object in which newer configs nest it.
float ReadTheta(const Json& kinds, const std::string& key, const char* kind, float fallback,
                Problems& problems) {
  if (!kinds.contains(kind) || !kinds[kind].is_object()) {
    problems.Add(absl::StrCat(key, ": expected an object with '", kGlobalLayer, "' and '",
                              kLocalLayer, "', found ", Describe(kinds)));
    return fallback;
  }
  ConfigReader parameters(kinds[kind], problems);
  const std::string type = parameters.Text({"rope_type"}, "default");
  if (type != "default") {
    problems.Add(
        absl::StrCat(key, ".", kind, ".rope_type: expected 'default', found ", Quoted(type)));
  }
  return parameters.Number({"rope_theta"}, kHighestTheta, fallback);
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
  if (!keys.window.empty()) return shape;  // see ReadLayerThetas
  if (const Json* parameters = config.Object(keys.rotary_parameters); parameters != nullptr) {
    ReadParameters(*parameters, shape, problems);
  }
  if (shape.rotary_theta <= 0) {
    problems.Add(absl::StrCat("expected a positive rotary base, found ", shape.rotary_theta));
  }
  return shape;
}

LayerThetas ReadLayerThetas(const ConfigKeys& keys, float theta, ConfigReader& config,
                            Problems& problems) {
  LayerThetas read = {theta, config.Number(keys.local_rotary_theta, kHighestTheta, theta)};
  if (const Json* kinds = config.Object(keys.rotary_parameters); kinds != nullptr) {
    const std::string& key = keys.rotary_parameters.front();
    read.global = ReadTheta(*kinds, key, kGlobalLayer, read.global, problems);
    read.local = ReadTheta(*kinds, key, kLocalLayer, read.local, problems);
  }
  if (read.global <= 0 || read.local <= 0) {
    problems.Add(
        absl::StrCat("expected positive rotary bases, found ", read.global, " and ", read.local));
  }
  return read;
}

}  // namespace attendant
