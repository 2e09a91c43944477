#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "absl/types/span.h"
#include "engine/checkpoint/families/config_parts.h"

namespace attendant {
namespace {

constexpr float kHighestTheta = 1e9f;
constexpr float kHighestFactor = 1e4f;

// Whether layers with a window have a rotation of their own.
bool HasKinds(const Family& family) { return !family.keys.local_rotary_theta.empty(); }

// Computes the frequencies from an object with rotary parameters. The library scales angles so that
// sequences longer than in training get similar angles.
class Parameters {
 public:
  // `config` has the values that the object leaves out; `is_of_kind` if the object is about one
  // kind of layers. All of them must outlive the reader.
  Parameters(const Json& object, bool is_of_kind, ConfigReader& config)
      : object_(object),
        is_of_kind_(is_of_kind),
        config_(config),
        reader_(object, config.problems()) {
    reader_.AllowOnly({"rope_type", "type", "rope_theta", "factor", "partial_rotary_factor",
                       "original_max_position_embeddings", "attention_factor", "beta_fast",
                       "beta_slow", "low_freq_factor", "high_freq_factor", "mscale",
                       "mscale_all_dim", "truncate"});
    if (reader_.Number({"partial_rotary_factor"}, kHighestFactor, 1.0f) != 1.0f) {
      config_.Refuse("partial_rotary_factor: expected 1 (all columns of a head are rotated)");
    }
  }

  // Fills in the frequencies and the amplitude of rotations of `width` columns; `theta` is the base
  // of objects that state none.
  void Compute(int64_t width, float theta, RotaryShape& shape) {
    theta_ = reader_.Number({"rope_theta"}, kHighestTheta, theta);
    if (theta_ <= 0) {
      return config_.Refuse("rope_theta: expected a positive number; got ", theta_);
    }
    shape.frequencies = RotaryFrequencies(width, theta_);
    if (const Scaling scale = ReadScaling(); scale != nullptr) (this->*scale)(shape);
  }

 private:
  using Scaling = void (Parameters::*)(RotaryShape& shape);

  // The library writes both keys for some time.
  Keys TypeKeys() const { return object_.contains("rope_type") ? Keys{"rope_type"} : Keys{"type"}; }

  // Returns how angles are scaled, or nullptr if they are not.
  Scaling ReadScaling() {
    constexpr Named<Scaling> kScalings[] = {{"default", nullptr},
                                            {"linear", &Parameters::ScaleLinearly},
                                            {"llama3", &Parameters::ScaleAsLlama3},
                                            {"yarn", &Parameters::ScaleAsYarn},
                                            {"ntk", &Parameters::ScaleAsNtk}};
    if (!reader_.Has(TypeKeys())) return nullptr;
    const Json& type = object_[TypeKeys().front()];
    if (type == "dynamic" || type == "longrope") {
      config_.Refuse(TypeKeys().front(), ": ", Describe(type), " not supported: its angles grow ",
                     "with the longest sequence of a batch, so that a response would depend on "
                     "other requests");
      return nullptr;
    }
    // Only files that models' authors publish know "ntk", and none of them has kinds of layers.
    return reader_.Choice<Scaling>(TypeKeys(),
                                   absl::MakeConstSpan(kScalings).first(is_of_kind_ ? 4 : 5));
  }

  float ReadFactor() {
    const float factor = reader_.Number({"factor"}, kHighestFactor);
    if (factor >= 1) return factor;
    config_.Refuse("factor: expected at least 1; got ", factor);
    return 1;
  }

  // The positions that the model was first trained for.
  double ReadOriginalLength() {
    const Keys key = {"original_max_position_embeddings"};
    if (!is_of_kind_ && config_.Has(key)) {
      return static_cast<double>(config_.Integer(key, kPositionRange));
    }
    if (reader_.Has(key)) return static_cast<double>(reader_.Integer(key, kPositionRange));
    return static_cast<double>(config_.Integer({"max_position_embeddings"}, kPositionRange));
  }

  // Divides all angles by the factor.
  void ScaleLinearly(RotaryShape& shape) {
    shape.frequencies = RotaryFrequencies(shape.width(), theta_, ReadFactor());
  }

  // Scales slow pairs more than fast ones: kexue.fm/archives/9706, equation 6.
  void ScaleAsNtk(RotaryShape& shape) {
    const double factor = ReadFactor();
    const auto stretch = std::pow(factor, 2 / static_cast<double>(shape.width()));
    shape.frequencies = RotaryFrequencies(shape.width(), static_cast<float>(theta_ * factor),
                                          static_cast<float>(stretch));
  }

  // Divides the angles of slow pairs, and not those of fast ones.
  void ScaleAsLlama3(RotaryShape& shape) {
    const double factor = ReadFactor(), length = ReadOriginalLength();
    const double low = reader_.Number({"low_freq_factor"}, kHighestFactor);
    const double high = reader_.Number({"high_freq_factor"}, kHighestFactor);
    if (low <= 0 || high <= low) {
      return config_.Refuse(
          "low_freq_factor: expected a positive number below high_freq_factor; got ", low, " and ",
          high);
    }
    for (double& frequency : shape.frequencies) {
      const double turns = length * frequency / (2 * std::numbers::pi);
      const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      frequency *= (1 - kept) / factor + kept;
    }
  }

  // Does the same with other bounds and an amplitude: Peng et al. 2023.
  void ScaleAsYarn(RotaryShape& shape) {
    const double length = ReadOriginalLength();
    // The library takes the ratio of lengths if the file says null.
    const bool is_ratio = object_.contains("factor") && object_["factor"].is_null();
    const double factor =
        is_ratio
            ? static_cast<double>(config_.Integer({"max_position_embeddings"}, kPositionRange)) /
                  length
            : static_cast<double>(ReadFactor());
    const double width = static_cast<double>(shape.width()), base = theta_;
    const double fast = NumberOr("beta_fast", 32), slow = NumberOr("beta_slow", 1);
    if (base <= 1) {
      return config_.Refuse("rope_theta: expected more than 1 for yarn; got ", base);
    }
    // The pair that turns as many times over the original length.
    const auto pair_of = [&](double turns) {
      return width * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    double first = pair_of(fast), last = pair_of(slow);
    // The library looks for "truncate" next to the layer kinds.
    if (is_of_kind_ || reader_.Boolean({"truncate"}, true)) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, width - 1);
    if (first == last) last += 0.001;
    for (size_t j = 0; j < shape.frequencies.size(); ++j) {
      const double scaled = std::clamp((static_cast<double>(j) - first) / (last - first), 0.0, 1.0);
      shape.frequencies[j] *= scaled / factor + (1 - scaled);
    }
    shape.amplitude = ReadAmplitude(factor);
  }

  float ReadAmplitude(double factor) {
    if (reader_.Has({"attention_factor"})) {
      return reader_.Number({"attention_factor"}, kHighestFactor);
    }
    const double scale = NumberOr("mscale", 0), of_all = NumberOr("mscale_all_dim", 0);
    const auto amplitude = [factor](double by) {
      return factor <= 1 ? 1 : 0.1 * by * std::log(factor) + 1;
    };
    return static_cast<float>(scale != 0 && of_all != 0 ? amplitude(scale) / amplitude(of_all)
                                                        : amplitude(1));
  }

  // A number of 0 counts as none.
  double NumberOr(const char* key, float fallback) {
    const float read = reader_.Number({key}, kHighestFactor, fallback);
    return read == 0 ? fallback : read;
  }

  const Json& object_;
  bool is_of_kind_;
  ConfigReader& config_;
  ConfigReader reader_;
  float theta_ = 0;
};

// Returns the parameters of one kind of layers, from an object that has both.
Json OfKind(const Json& kinds, const std::string& key, const char* kind, Problems& problems) {
  if (kinds.contains(kind) && kinds[kind].is_object()) return kinds[kind];
  problems.Add(key, ": expected an object with '", kGlobalLayer, "' and '", kLocalLayer, "'; got ",
               Describe(kinds));
  return Json::object();
}

// Returns the parameters for layers with or without a window. Parameters under the older key
// replace the newer one's, or override them for each kind.
Json ParametersOf(const Family& family, bool is_local, ConfigReader& config) {
  if (!family.scales_rotary) return Json::object();
  constexpr char kParameters[] = "rope_parameters", kScaling[] = "rope_scaling";
  const Json* parameters = config.Object({kParameters});
  const Json* scaling = config.Object({kScaling});
  if (scaling != nullptr && scaling->empty()) scaling = nullptr;
  if (!HasKinds(family)) {
    return scaling != nullptr ? *scaling : parameters != nullptr ? *parameters : Json::object();
  }
  Json read = parameters == nullptr
                  ? Json::object()
                  : OfKind(*parameters, kParameters, is_local ? kLocalLayer : kGlobalLayer,
                           config.problems());
  if (scaling == nullptr || (is_local && !family.scales_local_rotary)) return read;
  if (scaling->contains("type") && !scaling->contains("rope_type")) {
    config.Refuse(kScaling, ": type has no effect without rope_type");
  }
  read.update(*scaling);
  return read;
}

}  // namespace

RotaryShape ReadRotary(const Family& family, bool is_local, int64_t head_width,
                       ConfigReader& config) {
  const ConfigKeys& keys = family.keys;
  RotaryShape shape = family.relative_positions.rotary;
  if (config.Boolean(keys.rotary_interleaved, false)) shape.pairs = RotaryPairs::kInterleaved;
  const float fraction = config.Number(keys.rotary_fraction, 1, 1.0f);
  const auto width = static_cast<int64_t>(static_cast<double>(head_width) * fraction);
  if (width < 2 || width % 2 != 0) {
    config.Refuse("expected an even number of rotary columns in a head; got ", width, " of ",
                  head_width);
    return shape;
  }
  const float global_theta = config.Number(keys.rotary_theta, kHighestTheta, family.rotary_theta);
  const float theta =
      HasKinds(family) && is_local
          ? config.Number(keys.local_rotary_theta, kHighestTheta, family.local_rotary_theta)
          : global_theta;
  const Json parameters = ParametersOf(family, is_local, config);
  Parameters(parameters, HasKinds(family), config).Compute(width, theta, shape);
  return shape;
}

}  // namespace attendant
