#include "client/files/tensor_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/files/npy.h"

namespace attendant::client {
namespace {

constexpr char kNpy[] = ".npy";
constexpr char kSafetensors[] = ".safetensors";

}  // namespace

absl::StatusOr<Tensor> ReadTensor(const std::string& location) {
  if (absl::EndsWith(location, kNpy)) return ReadNpy(location);
  if (absl::EndsWith(location, kSafetensors)) return ReadSafetensors(location, "");
  const std::string separator = absl::StrCat(kSafetensors, ":");
  const size_t found = location.rfind(separator);
  if (found == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(location, ": expected FILE.npy, FILE.safetensors or FILE.safetensors:NAME"));
  }
  return ReadSafetensors(location.substr(0, found + separator.size() - 1),
                         location.substr(found + separator.size()));
}

absl::Status CheckWritable(const std::string& path, size_t tensors) {
  if (absl::EndsWith(path, kSafetensors)) return absl::OkStatus();
  if (!absl::EndsWith(path, kNpy)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a name ending in .npy or .safetensors"));
  }
  if (tensors == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected one tensor for .npy; got ",
                                                 tensors, "; write to .safetensors"));
}

absl::Status WriteTensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  if (absl::Status status = CheckWritable(path, tensors.size()); !status.ok()) return status;
  if (absl::EndsWith(path, kNpy)) return WriteNpy(path, tensors.front().tensor);
  return WriteSafetensors(path, tensors);
}

}  // namespace attendant::client
