#include "engine/checkpoint/weight_binder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"
#include "engine/checkpoint/sha256.h"

namespace attendant {
namespace {

std::string JoinNames(absl::Span<const TensorPart> places) {
  return absl::StrJoin(places, " or ", [](std::string* out, const TensorPart& place) {
    out->append(Quoted(place.name));
  });
}

// [1, 1, 4] as a vector is [4].
std::vector<int64_t> WithoutLeadingOnes(std::vector<int64_t> shape, size_t rank) {
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

}  // namespace

void WeightBinder::AddFiles(const std::string& prefix, WeightFiles files) {
  for (SafetensorsFile& file : files.files) {
    for (auto& [name, tensor] : file.tensors) {
      const int index = static_cast<int>(files_.size());
      const bool is_new =
          entries_.emplace(prefix + name, Entry{index, name, std::move(tensor)}).second;
      if (!is_new) problems_.Add(absl::StrCat("tensor ", Quoted(prefix + name), ": found twice"));
    }
    files_.push_back(std::move(file.file));
  }
  warnings_.insert(warnings_.end(), files.warnings.begin(), files.warnings.end());
}

const FileTensor* WeightBinder::Find(const std::string& name) const {
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : &entry->second.tensor;
}

std::string WeightBinder::Show(const std::string& name) const {
  const Entry& entry = entries_.at(name);
  return absl::StrCat(files_[entry.file].path(), ": tensor ", Quoted(entry.name), " ",
                      entry.tensor.dtype, " ", ShapeToString(entry.tensor.shape));
}

void WeightBinder::Bind(const WeightSpec& spec, absl::Span<const TensorPart> places) {
  const auto place = std::find_if(places.begin(), places.end(), [&](const TensorPart& candidate) {
    return entries_.contains(candidate.name);
  });
  const RowPart part = place == places.end() ? RowPart() : place->rows;
  std::vector<int64_t> shape = spec.shape;
  shape[0] *= part.count;
  if (place == places.end()) {
    if (spec.optional) return;
    problems_.Add(absl::StrCat("tensor ", JoinNames(places), ": expected ", ShapeToString(shape),
                               ", found none"));
    return;
  }
  bound_[place->name].emplace(part.index, spec.name);
  const Entry& entry = entries_.at(place->name);
  const bool is_float = entry.tensor.data_type && IsFloat(*entry.tensor.data_type);
  if (WithoutLeadingOnes(entry.tensor.shape, shape.size()) != shape || !is_float) {
    problems_.Add(
        absl::StrCat(Show(place->name), ": expected F32, F16, BF16 or F64 ", ShapeToString(shape)));
    return;
  }
  const int64_t bytes = entry.tensor.bytes / part.count;
  places_[spec.name] = {entry.file, entry.name, *entry.tensor.data_type,
                        entry.tensor.offset + part.index * bytes,
                        bytes / ByteWidth(*entry.tensor.data_type)};
}

std::vector<std::string> WeightBinder::Unbound() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : entries_) {
    if (!bound_.contains(name)) names.push_back(name);
  }
  return names;
}

std::vector<CheckpointTensor> WeightBinder::ListTensors() const {
  std::vector<CheckpointTensor> tensors;
  for (const auto& [name, entry] : entries_) {
    const FileTensor& tensor = entry.tensor;
    CheckpointTensor& listed = tensors.emplace_back(CheckpointTensor{
        files_[entry.file].path(), entry.name, tensor.dtype, tensor.shape, tensor.bytes, {}});
    const auto bound = bound_.find(name);
    if (bound == bound_.end()) continue;
    for (const auto& [index, weight] : bound->second) listed.weights.push_back(weight);
  }
  return tensors;
}

absl::Status WeightBinder::CheckDigest(const std::string& expected) const {
  std::vector<std::pair<std::string, std::string>> digests;
  for (const InputFile& file : files_) {
    absl::StatusOr<std::string> digest = Sha256(file);
    if (!digest.ok()) return digest.status();
    digests.emplace_back(file.path(), *std::move(digest));
  }
  std::string found = digests.front().second;
  if (digests.size() > 1) {
    std::sort(digests.begin(), digests.end());
    std::string all;
    for (const auto& [path, digest] : digests) all += digest;
    absl::StatusOr<std::string> digest = Sha256(all);
    if (!digest.ok()) return digest.status();
    found = *std::move(digest);
  }
  if (found == expected) return absl::OkStatus();
  std::vector<std::string> paths;
  for (const auto& [path, digest] : digests) paths.push_back(path);
  return absl::InvalidArgumentError(absl::StrCat(absl::StrJoin(paths, ", "), ": expected SHA-256 ",
                                                 Quoted(expected), ", found ", found));
}

absl::Status WeightBinder::Finish(const CheckpointOptions& options, Checkpoint& checkpoint) {
  checkpoint.tensors = ListTensors();
  checkpoint.warnings.insert(checkpoint.warnings.end(), warnings_.begin(), warnings_.end());
  if (absl::Status status = problems_.ToStatus(); !status.ok()) return status;
  if (!options.weights_sha256.empty()) {
    if (absl::Status status = CheckDigest(options.weights_sha256); !status.ok()) return status;
  }
  checkpoint.weights = std::make_unique<FileWeights>(std::move(files_), std::move(places_),
                                                     options.allow_nonfinite_weights);
  return absl::OkStatus();
}

}  // namespace attendant
