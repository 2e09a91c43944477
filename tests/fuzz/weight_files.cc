#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/families/model_config.h"
#include "engine/checkpoint/files/safetensors.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/fuzz/fuzz_target.h"

namespace attendant {
namespace {

constexpr const char* kFolderFiles[] = {
    "config.json",         "model.safetensors.index.json",
    "modules.json",        "1_Pooling/config.json",
    "2_Dense/config.json", "attendant.json",
    "prune.json",
};
constexpr char kEndOfFile = '\xff';
constexpr int64_t kMostData = 1 << 16;

TempFolder& Folder() {
  static auto& folder = *new TempFolder();
  return folder;
}

std::string Refusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return "";
    default:
      return absl::StrCat("unexpected status: ", status.ToString());
  }
}

// The tensors of an accepted header lie one after the other, from the end of the header on.
std::string FindHole(const TensorTable& tensors, int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const auto& [name, tensor] : tensors) places.emplace_back(tensor.offset, tensor.bytes);
  std::sort(places.begin(), places.end());
  for (const auto& [offset, bytes] : places) {
    if (offset != begin || bytes < 0) return absl::StrCat("hole or overlap at byte ", begin);
    begin += bytes;
  }
  return begin == end ? "" : absl::StrCat("data ends at byte ", end, ", tensors at ", begin);
}

// A file with zeros for data, as much as the header accepts of up to kMostData bytes.
std::string WithZeros(absl::string_view header) {
  const std::string text(header);
  for (int64_t bytes = 0; bytes <= kMostData; bytes = bytes == 0 ? 16 : 2 * bytes) {
    if (ParseSafetensorsHeader(text, bytes, "file").ok()) {
      return WithLength(text, std::string(bytes, '\0'));
    }
  }
  return WithLength(text);
}

// Takes the next file from the front of `input`.
absl::string_view NextFile(absl::string_view& input) {
  const size_t size = std::min(input.find(kEndOfFile), input.size());
  const absl::string_view file = input.substr(0, size);
  input.remove_prefix(std::min(size + 1, input.size()));
  return file;
}

}  // namespace

std::string FuzzSafetensors(absl::string_view input) {
  uint32_t data_bytes = 0;
  if (input.size() < sizeof data_bytes) return "";
  std::memcpy(&data_bytes, input.data(), sizeof data_bytes);
  const absl::string_view header = input.substr(sizeof data_bytes);
  const absl::StatusOr<TensorTable> tensors = ParseSafetensorsHeader(header, data_bytes, "file");
  if (!tensors.ok()) return Refusal(tensors.status());
  const int64_t begin = 8 + static_cast<int64_t>(header.size());
  return FindHole(*tensors, begin, begin + data_bytes);
}

std::string FuzzConfig(absl::string_view input) {
  Folder().Write("config.json", std::string(input));
  return Refusal(ReadModelConfig(Folder().path()).status());
}

std::string FuzzFolder(absl::string_view input) {
  for (const char* name : kFolderFiles) {
    const absl::string_view file = NextFile(input);
    std::filesystem::remove(Folder().File(name));
    if (!file.empty()) Folder().Write(name, std::string(file));
  }
  Folder().Write("model.safetensors", WithZeros(NextFile(input)));
  CheckpointOptions options;
  if (std::filesystem::exists(Folder().File("prune.json"))) {
    options.prune_file = Folder().File("prune.json");
  }
  Checkpoint found;
  const absl::Status status = InspectCheckpoint(Folder().path(), options, found);
  if (status.ok()) ListValueProblems(found.description, *found.weights);
  return Refusal(status);
}

}  // namespace attendant
