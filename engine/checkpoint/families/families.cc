#include "engine/checkpoint/families/families.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/spelling.h"

namespace attendant {
namespace {

constexpr Named<Activation> kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"quick_gelu", Activation::kQuickGelu},
    {"relu", Activation::kRelu},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},
    {"sigmoid", Activation::kSigmoid},
    {"linear", Activation::kIdentity},
};

constexpr size_t kShortestMisspelling = 5;

// The names are in lower case.
constexpr Named<const char*> kRefusedFamilies[] = {
    {"sesamebert",
     "SesameBERT weights the outputs of all layers by squeeze-and-excitation and blurs its "
     "attention; it exists only as research code without a checkpoint format"},
    {"sembert",
     "SemBERT combines an encoder with semantic roles from another model; it exists only as "
     "research code without a checkpoint format; its encoder is a plain BERT"},
    {"siglip2",
     "it is NaFlex: images have any number of patches, and positions are resized for each image; "
     "SigLIP 2 checkpoints for one image size have the model_type siglip"},
};

bool IsArchitecture(const Family& family, absl::string_view architecture) {
  return std::any_of(
      family.architectures.begin(), family.architectures.end(), [&](absl::string_view stem) {
        absl::string_view rest = architecture;
        return absl::ConsumePrefix(&rest, stem) &&
               (rest == "Model" || rest == "EncoderModel" || absl::StartsWith(rest, "For"));
      });
}

}  // namespace

Family Like(Family family, const std::string& name, const std::string& architecture) {
  family.name = name;
  family.model_types = {name};
  family.architectures = {architecture};
  return family;
}

std::vector<Named<FeedForwardKind>> GatedKinds(const std::string& first) {
  std::vector<Named<FeedForwardKind>> kinds;
  for (const Named<Activation>& row : ActivationNames()) {
    kinds.insert(row.name == first ? kinds.begin() : kinds.end(), {row.name, {row.value, true}});
  }
  return kinds;
}

Keys Words(absl::string_view text) { return absl::StrSplit(text, ' '); }

const std::vector<Family>& Families() {
  static const auto& families = *[] {
    auto* all = new std::vector<Family>(TextFamilies());
    for (const auto& more : {EncoderDecoderFamilies, LongTextFamilies, CausalFamilies,
                             TowerFamilies, SignalFamilies}) {
      for (Family& family : more()) all->push_back(std::move(family));
    }
    return all;
  }();
  return families;
}

const Family* FindFamily(const std::string& model_type,
                         const std::vector<std::string>& architectures,
                         const std::string& position_type) {
  const auto is_architecture = [&](const Family& family) {
    return std::any_of(architectures.begin(), architectures.end(),
                       [&](const std::string& name) { return IsArchitecture(family, name); });
  };
  for (const Family& family : Families()) {
    if (family.model_types.empty() && is_architecture(family)) return &family;
  }
  const auto has = [](const auto& list, const std::string& text) {
    return std::find(list.begin(), list.end(), text) != list.end();
  };
  const Family* first = nullptr;
  for (const Family& family : Families()) {
    if (model_type.empty() && is_architecture(family)) return &family;
    if (!has(family.model_types, model_type)) continue;
    if (first == nullptr) first = &family;
    if (has(family.position_embedding_types, position_type)) return &family;
  }
  return first;
}

const char* ReasonToRefuse(const std::string& model_type,
                           const std::vector<std::string>& architectures) {
  std::vector<std::string> names = architectures;
  names.push_back(model_type);
  for (const auto& [refused, reason] : kRefusedFamilies) {
    for (const std::string& name : names) {
      const std::string plain =
          absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"-", ""}, {"_", ""}});
      if (absl::StartsWith(plain, refused)) return reason;
    }
  }
  return nullptr;
}

std::string MisspelledModelType(const std::string& model_type) {
  const std::string lower = absl::AsciiStrToLower(model_type);
  for (const Family& family : Families()) {
    for (const std::string& known : family.model_types) {
      const size_t distance = SpellingDistance(lower, known);
      const bool swapped = distance == 2 && std::is_permutation(lower.begin(), lower.end(),
                                                                known.begin(), known.end());
      // Shorter words are near to each other without being the same: bart, bert.
      const bool is_long = lower.size() >= kShortestMisspelling;
      if (distance == 0 || (is_long && (distance == 1 || swapped))) return known;
    }
  }
  return "";
}

std::vector<TensorPart> PlacesInFile(const Family& family, const std::string& prefix,
                                     const std::string& canonical) {
  return PlacesInFile({&family.names, &family.token_head_names, &family.vocabulary_head_names},
                      prefix, canonical);
}

absl::Span<const Named<Activation>> ActivationNames() { return kActivations; }

}  // namespace attendant
