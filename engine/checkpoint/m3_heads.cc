#include "engine/checkpoint/m3_heads.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/files/other_formats.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_files.h"
#include "engine/checkpoint/sentence_transformers.h"

namespace attendant {
namespace {

// The tokens that the library gives no weight.
constexpr const char* kExcludedRoles[] = {"cls", "eos", "pad", "unk"};

// Adds the linear layer of `kM3Heads`' file `stem` as the only one of the head `name`, and returns
// its width; nothing if the folder does not have the file.
absl::StatusOr<std::optional<int64_t>> AddLinear(const std::string& folder, const std::string& stem,
                                                 const std::string& name, int64_t hidden_size,
                                                 const CheckpointOptions& options,
                                                 WeightBinder& binder) {
  const std::string file = stem + ".safetensors";
  if (!PathExists(absl::StrCat(folder, "/", file))) return std::optional<int64_t>();
  const std::string prefix = absl::StrCat(kDensePrefix, stem, "/");
  RETURN_IF_ERROR(binder.AddFiles(prefix, OpenWeightFile(folder, file, options)));
  const FileTensor* weight = binder.FindMatrix(prefix + "weight");
  const int64_t width = weight == nullptr ? 1 : weight->shape[0];
  binder.Bind({name + ".dense.weight", {width, hidden_size}}, {{prefix + "weight"}});
  binder.Bind({name + ".dense.bias", {width}}, {{prefix + "bias"}});
  return std::optional<int64_t>(width);
}

void WarnOfPickles(const std::string& folder, std::vector<std::string>& warnings) {
  std::vector<std::string> pickles;
  for (const char* stem : kM3Heads) {
    const std::string path = absl::StrCat(folder, "/", stem);
    if (PathExists(path + ".pt") && !PathExists(path + ".safetensors")) pickles.emplace_back(stem);
  }
  if (pickles.empty()) return;
  const auto quoted = [](std::string* out, const std::string& stem) {
    absl::StrAppend(out, "'", stem, "'");
  };
  warnings.push_back(absl::StrCat(
      folder, ": ", absl::StrJoin(pickles, ".pt and "),
      ".pt: only safetensors are read, so the model has no ",
      pickles.size() == 2              ? "sparse vectors and no token vectors"
      : pickles.front() == kM3Heads[0] ? "sparse vectors"
                                       : "token vectors",
      "; convert ", pickles.size() == 2 ? "them" : "it",
      " in that directory: python3 -c \"import torch, safetensors.torch as st; [st.save_file({k: "
      "v.clone().contiguous() for k, v in torch.load(n + '.pt', map_location='cpu', "
      "weights_only=True).items()}, n + '.safetensors') for n in [",
      absl::StrJoin(pickles, ", ", quoted), "]]\""));
}

}  // namespace

absl::Status AddM3Heads(const std::string& folder, const CheckpointOptions& options,
                        bool has_modules, Checkpoint& checkpoint, WeightBinder& binder) {
  ModelDescription& model = checkpoint.description;
  if (!model.embeddings || model.token_head || model.vocabulary_head) return absl::OkStatus();
  WarnOfPickles(folder, checkpoint.warnings);
  const int64_t hidden_size = model.layer.hidden_size;
  ASSIGN_OR_RETURN(const auto lexical, AddLinear(folder, kM3Heads[0], Name(HeadKind::kLexical),
                                                 hidden_size, options, binder));
  ASSIGN_OR_RETURN(const auto vectors, AddLinear(folder, kM3Heads[1], Name(HeadKind::kTokenHead),
                                                 hidden_size, options, binder));
  if (lexical) {
    if (*lexical != 1) {
      return InvalidArgument(folder, "/", kM3Heads[0], ".safetensors: expected weight [1, ",
                             hidden_size, "] (one number for each token); got ", *lexical, " rows");
    }
    model.lexical_head = {.modes = {}, .dense_width = 1, .dense_activation = Activation::kRelu};
    for (const char* role : kExcludedRoles) {
      const auto found = checkpoint.tokenization.special_tokens.find(role);
      if (found == checkpoint.tokenization.special_tokens.end()) continue;
      model.lexical_head->excluded_ids.push_back(static_cast<int32_t>(found->second));
    }
    std::vector<int32_t>& excluded = model.lexical_head->excluded_ids;
    std::sort(excluded.begin(), excluded.end());
    if (excluded.empty()) {
      checkpoint.warnings.push_back(absl::StrCat(
          folder,
          ": tokenizer_config.json: no cls_token, eos_token, pad_token or unk_token: sparse ",
          "vectors weight special tokens like all others"));
    }
  }
  if (vectors) {
    model.token_head = {
        .modes = {}, .dense_width = *vectors, .normalize = true, .excludes_first = true};
    checkpoint.tokenization.is_multi_vector = true;
  }
  if ((lexical || vectors) && !has_modules && options.pooling == PoolingChoice::kAsFiles) {
    model.pooling = {.modes = {PoolingMode::kFirstToken}, .normalize = true};
  }
  return absl::OkStatus();
}

}  // namespace attendant
