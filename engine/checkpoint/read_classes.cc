#include "engine/checkpoint/read_classes.h"

#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/names.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/json.h"

namespace attendant {
namespace {

// The torch modules by which CrossEncoder stores its activation. It ignores other packages unless
// told to trust them.
constexpr Named<ScoreFunction> kScoreActivations[] = {
    {"torch.nn.modules.activation.Sigmoid", ScoreFunction::kSigmoid},
    {"torch.nn.modules.linear.Identity", ScoreFunction::kPlain},
    {"torch.nn.modules.activation.Softmax", ScoreFunction::kSoftmax},
    {"torch.nn.Sigmoid", ScoreFunction::kSigmoid},
    {"torch.nn.Identity", ScoreFunction::kPlain},
    {"torch.nn.Softmax", ScoreFunction::kSoftmax}};

constexpr Named<ScoreFunction> kProblems[] = {
    {"regression", ScoreFunction::kPlain},
    {"multi_label_classification", ScoreFunction::kSigmoid},
    {"single_label_classification", ScoreFunction::kSoftmax}};

// Reads class names from {"0": "first", "1": "second", …}. Those that have no name there are called
// as the library calls them.
std::vector<std::string> ReadLabels(const Json* names, int64_t classes) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < classes; ++i) {
    const Json name = names == nullptr ? Json() : names->value(absl::StrCat(i), Json());
    if (name.is_null() || name.is_structured()) {
      labels.push_back(absl::StrCat("LABEL_", i));
    } else {
      labels.push_back(name.is_string() ? name.get<std::string>() : name.dump());
    }
  }
  return labels;
}

// Returns the activation under this key; nothing if it is absent, or of another package.
std::optional<ScoreFunction> ActivationAt(const std::string& key, ConfigReader& config) {
  if (!absl::StartsWith(config.Text({key}, ""), "torch.")) return std::nullopt;
  return config.Choice<ScoreFunction>({key}, kScoreActivations);
}

// Returns the activation of a CrossEncoder in the newest place, which counts with modules.json
// only.
absl::StatusOr<std::optional<ScoreFunction>> ReadNewestActivation(const std::string& folder) {
  std::optional<ScoreFunction> found;
  if (!PathExists(absl::StrCat(folder, "/modules.json"))) return found;
  const std::string path = absl::StrCat(folder, "/config_sentence_transformers.json");
  RETURN_IF_ERROR(ReadConfigOrDefaults(
      path, [&](ConfigReader& config) { found = ActivationAt("activation_fn", config); }));
  return found;
}

// Returns the activation in the older places, the newest first.
std::optional<ScoreFunction> ReadActivation(ConfigReader& config) {
  if (const Json* older = config.Object({"sentence_transformers"}); older != nullptr) {
    ConfigReader reader(*older, config.problems());
    if (reader.Has({"activation_fn"})) return ActivationAt("activation_fn", reader);
  }
  return ActivationAt("sbert_ce_default_activation_function", config);
}

}  // namespace

absl::Status ReadClasses(const std::string& folder, const std::string& transformer,
                         const ClassCounts& classes, Tokenization& read) {
  std::optional<ScoreFunction> newest;
  if (classes.of_sequences > 0) {
    ASSIGN_OR_RETURN(newest, ReadNewestActivation(folder));
  }
  return ReadConfig(absl::StrCat(transformer, "/config.json"), [&](ConfigReader& config) {
    const int64_t count = classes.of_sequences > 0 ? classes.of_sequences : classes.of_tokens;
    read.labels = ReadLabels(config.Object({"id2label"}), count);
    if (classes.of_sequences == 0) return;
    const bool is_alone = classes.of_sequences == 1;
    const std::optional<ScoreFunction> activation = newest ? newest : ReadActivation(config);
    // As the library's pipelines, and as CrossEncoder.
    const auto of_problem = config.Choice<ScoreFunction>(
        {"problem_type"}, kProblems, is_alone ? ScoreFunction::kSigmoid : ScoreFunction::kSoftmax);
    const bool is_softmax_of_one = is_alone && of_problem == ScoreFunction::kSoftmax;
    read.class_scores =
        activation.value_or(is_softmax_of_one ? ScoreFunction::kSigmoid : of_problem);
    read.rank_scores =
        activation.value_or(is_alone ? ScoreFunction::kSigmoid : ScoreFunction::kPlain);
  });
}

}  // namespace attendant
