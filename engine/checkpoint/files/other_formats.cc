#include "engine/checkpoint/files/other_formats.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPickleEnds[] = {".bin", ".pt", ".pth", ".ckpt", ".bin.index.json"};
constexpr const char* kOtherEnds[] = {".onnx", ".gguf", ".h5", ".msgpack", "openvino_model.bin"};
// Files that trainers save along with the weights. FlagEmbedding's heads are not the model's
// weights either.
constexpr const char* kNoWeights[] = {"training_args", "optimizer", "scheduler", "rng_state",
                                      "random_states"};

template <size_t count>
bool EndsWithAny(absl::string_view name, const char* const (&ends)[count]) {
  return std::any_of(std::begin(ends), std::end(ends),
                     [&](const char* end) { return absl::EndsWith(name, end); });
}

bool IsWeights(absl::string_view name) {
  const auto starts = [&](const char* start) { return absl::StartsWith(name, start); };
  return std::none_of(std::begin(kNoWeights), std::end(kNoWeights), starts) &&
         std::none_of(std::begin(kM3Heads), std::end(kM3Heads), starts);
}

// Returns the paths in the folder of weights in other formats, below `in_folder` in it, sorted.
std::vector<std::string> ListOthers(const std::string& folder, const std::string& in_folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder + "/" + in_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsWeights(name) && (IsPickle(name) || EndsWithAny(name, kOtherEnds))) {
      names.push_back(in_folder + name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns a pattern of Python's glob for the file, or for all shards of which it is one or the
// index. The names come from untrusted files, and the text is meant for a shell.
std::string PatternFor(const std::string& name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
  if (!is_plain) return "FILE";
  const size_t shard = name.find("-0000");
  const size_t stem = shard != name.npos ? shard : name.find(".bin.index.json");
  return stem == name.npos ? name : absl::StrCat(name.substr(0, stem), "-*.bin");
}

absl::Status RefuseExport(const std::string& folder, const std::string& name) {
  return InvalidArgument(
      folder, ": only safetensors are read; got ", Quoted(name),
      "; save the original model: python3 -c \"from transformers import AutoModel; "
      "AutoModel.from_pretrained('ORG/REPO').save_pretrained('DIRECTORY')\"");
}

}  // namespace

bool IsPickle(const std::string& name) {
  return EndsWithAny(name, kPickleEnds) && !EndsWithAny(name, kOtherEnds);
}

absl::Status RefusePickle(const std::string& folder, const std::string& name,
                          const std::string& target) {
  return InvalidArgument(
      folder, ": only safetensors are read; got ", Quoted(name),
      ", a pickle, which can run code when it is read; convert it in its directory: python3 -c "
      "\"import glob, torch, safetensors.torch as st; st.save_file({k: v.clone().contiguous() for "
      "f in glob.glob('",
      PatternFor(name),
      "') for k, v in torch.load(f, map_location='cpu', weights_only=True).items()}, '", target,
      "')\"");
}

absl::Status RefuseOtherFormats(const std::string& folder) {
  std::vector<std::string> found;
  for (const char* in_folder : {"", "onnx/", "openvino/"}) {
    if (found.empty()) found = ListOthers(folder, in_folder);
  }
  if (found.empty()) return absl::OkStatus();
  const auto pickle = std::find_if(found.begin(), found.end(), IsPickle);
  return pickle != found.end() ? RefusePickle(folder, *pickle)
                               : RefuseExport(folder, found.front());
}

}  // namespace attendant
