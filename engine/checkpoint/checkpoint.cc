#include "engine/checkpoint/checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/shape.h"
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
  return absl::InvalidArgumentError(absl::StrCat("weights SHA-256: expected ", kDigestDigits,
                                                 " lower-case hexadecimal digits, found '", digest,
                                                 "'"));
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
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": ", option, ": not supported: only a folder of Hugging Face's has it"));
  }
  return absl::OkStatus();
}

absl::Status InspectFolder(const std::string& folder, const CheckpointOptions& options,
                           Checkpoint& found) {
  const auto has = [&](const char* name) { return PathExists(absl::StrCat(folder, "/", name)); };
  if (has(kTorchDescriptionFile)) {
    if (absl::Status status = RefuseOptions(folder, options); !status.ok()) return status;
    return OpenTorchModule(folder, options, found);
  }
  if (!has("config.json")) {
    if (absl::Status status = RefuseAdapterAlone(folder); !status.ok()) return status;
  }
  if (has("config.json") || has("modules.json")) return OpenHuggingFace(folder, options, found);
  if (!PathExists(folder)) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": neither a folder nor worked-example nor synthetic:<name>"));
  }
  if (absl::Status status = RefuseOtherFormats(folder); !status.ok()) return status;
  return absl::NotFoundError(absl::StrCat(folder, ": expected a folder with config.json or ",
                                          kTorchDescriptionFile, ", found neither"));
}

absl::Status InspectSource(const std::string& source, const CheckpointOptions& options,
                           Checkpoint& found) {
  absl::string_view rest = source;
  const bool is_synthetic = absl::ConsumePrefix(&rest, "synthetic:");
  if (!is_synthetic && source != "worked-example") return InspectFolder(source, options, found);
  if (!options.weights_sha256.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": has no weight file whose SHA-256 could be checked"));
  }
  if (absl::Status status = RefuseOptions(source, options); !status.ok()) return status;
  absl::StatusOr<Checkpoint> opened = is_synthetic ? OpenSynthetic(rest) : OpenWorkedExample();
  if (opened.ok()) found = std::move(*opened);
  return opened.status();
}

}  // namespace

absl::Status InspectCheckpoint(const std::string& source, const CheckpointOptions& options,
                               Checkpoint& found) {
  if (absl::Status status = CheckDigestText(options.weights_sha256); !status.ok()) return status;
  absl::Status status = InspectSource(source, options, found);
  if (status.ok() && !options.adapter.empty())
    status = MergeAdapter(options.adapter, options, found);
  if (status.ok() && !options.prune_file.empty()) status = PruneHeads(options.prune_file, found);
  return status;
}

absl::StatusOr<Checkpoint> OpenCheckpoint(const std::string& source,
                                          const CheckpointOptions& options) {
  Checkpoint checkpoint;
  if (absl::Status status = InspectCheckpoint(source, options, checkpoint); !status.ok()) {
    return status;
  }
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
