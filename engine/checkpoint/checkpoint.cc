#include "engine/checkpoint/checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/adapter.h"
#include "engine/checkpoint/embedded.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/other_formats.h"
#include "engine/checkpoint/hugging_face.h"
#include "engine/checkpoint/pruning.h"
#include "engine/checkpoint/torch/torch_modules.h"

namespace attendant {
namespace {

constexpr size_t kDigestDigits = 64;

absl::Status CheckDigestText(const std::string& digest) {
  const bool is_digest = digest.size() == kDigestDigits &&
                         std::all_of(digest.begin(), digest.end(), [](unsigned char c) {
                           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                         });
  if (digest.empty() || is_digest) return absl::OkStatus();
  return InvalidArgument("weights SHA-256: expected ", kDigestDigits,
                         " lower-case hexadecimal digits; got '", digest, "'");
}

// Refuses options that belong to folders of Hugging Face's.
absl::Status RefuseOptions(const std::string& source, const CheckpointOptions& options) {
  const std::pair<const char*, bool> unfit[] = {
      {"pooling", options.pooling != PoolingChoice::kAsFiles},
      {"causal", options.causal != CausalChoice::kAsFiles},
      {"task", !options.task.empty()},
      {"route", !options.route.empty()},
      {"tower", options.tower != Tower::kOnly},
  };
  for (const auto& [option, is_there] : unfit) {
    if (!is_there) continue;
    return InvalidArgument(source, ": ", option,
                           ": not supported: only Hugging Face models have this option");
  }
  return absl::OkStatus();
}

absl::Status InspectFolder(const std::string& folder, const CheckpointOptions& options,
                           Checkpoint& found) {
  const auto has = [&](const char* name) { return PathExists(absl::StrCat(folder, "/", name)); };
  if (has(kTorchDescriptionFile)) {
    RETURN_IF_ERROR(RefuseOptions(folder, options));
    return OpenTorchModule(folder, options, found);
  }
  if (!has("config.json")) {
    RETURN_IF_ERROR(RefuseAdapterAlone(folder));
  }
  if (has("config.json") || has("modules.json")) return OpenHuggingFace(folder, options, found);
  // A directory that this process may not search looks empty.
  const absl::Status opened = InputFile::Open(absl::StrCat(folder, "/config.json"), 0).status();
  if (absl::IsUnavailable(opened)) return opened;
  if (!PathExists(folder)) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": not a directory, worked-example or synthetic:<name>"));
  }
  RETURN_IF_ERROR(RefuseOtherFormats(folder));
  return absl::NotFoundError(
      absl::StrCat(folder, ": expected a directory with config.json or ", kTorchDescriptionFile));
}

absl::Status InspectSource(const std::string& source, const CheckpointOptions& options,
                           Checkpoint& found) {
  absl::string_view rest = source;
  const bool is_synthetic = absl::ConsumePrefix(&rest, "synthetic:");
  if (!is_synthetic && source != "worked-example") return InspectFolder(source, options, found);
  if (!options.weights_sha256.empty()) {
    return InvalidArgument(source, ": no weight file to check the SHA-256 of");
  }
  RETURN_IF_ERROR(RefuseOptions(source, options));
  ASSIGN_OR_RETURN(found, is_synthetic ? OpenSynthetic(rest) : OpenWorkedExample());
  return absl::OkStatus();
}

}  // namespace

absl::Status InspectCheckpoint(const std::string& source, const CheckpointOptions& options,
                               Checkpoint& found) {
  RETURN_IF_ERROR(CheckDigestText(options.weights_sha256));
  RETURN_IF_ERROR(InspectSource(source, options, found));
  if (!options.adapter.empty()) {
    if (options.pooling == PoolingChoice::kAsFiles) {
      RETURN_IF_ERROR(CheckModulesOfAdapter(options.adapter, source));
    }
    RETURN_IF_ERROR(MergeAdapter(options.adapter, options, found));
  }
  return options.prune_file.empty() ? absl::OkStatus() : PruneHeads(options.prune_file, found);
}

absl::StatusOr<Checkpoint> OpenCheckpoint(const std::string& source,
                                          const CheckpointOptions& options) {
  Checkpoint checkpoint;
  RETURN_IF_ERROR(InspectCheckpoint(source, options, checkpoint));
  return checkpoint;
}

std::vector<std::string> ListValueProblems(const ModelDescription& description,
                                           WeightSource& weights) {
  std::vector<std::string> problems;
  std::vector<float> values;
  for (const WeightSpec& spec : ListWeights(description)) {
    if (!weights.Has(spec.name)) continue;
    values.resize(ElementCount(spec.shape).value_or(0));
    const absl::Status status = weights.Read(spec.name, absl::MakeSpan(values));
    if (!status.ok()) problems.emplace_back(status.message());
  }
  return problems;
}

}  // namespace attendant
