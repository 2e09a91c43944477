#include "engine/checkpoint/files/weight_binder.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/digests.h"
#include "engine/model/layer_parts.h"

namespace attendant {
namespace {

std::string JoinNames(absl::Span<const TensorPart> places) {
  return absl::StrJoin(places, " or ", [](std::string* out, const TensorPart& place) {
    out->append(Quoted(place.name));
  });
}

// Drops leading dimensions of 1 beyond `rank`: [1, 1, 4] as a vector is [4]. A number is [1].
std::vector<int64_t> WithoutLeadingOnes(std::vector<int64_t> shape, size_t rank) {
  if (shape.empty()) return {1};
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

// Returns the shape that a tensor must have in the file if `part` of it has the given shape.
std::vector<int64_t> ShapeInFile(const TensorPart& part, std::vector<int64_t> shape) {
  if (part.transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
  shape[0] = shape[0] / part.rows.width * part.rows.count;
  return shape;
}

// Returns the type of all tables of embeddings in the files, or float32, if they have several, or
// float64.
DataType TypeOfTables(const WeightPlaces& places) {
  const DataType type = places.at("embeddings.word").front().data_type;
  for (const char* name : {"embeddings.word", "embeddings.position", "embeddings.token_type",
                           "embeddings.task_type"}) {
    const auto found = places.find(name);
    if (found == places.end()) continue;
    for (const WeightPlace& place : found->second) {
      if (place.data_type != type || place.transposed_columns > 0) return DataType::kFloat32;
    }
  }
  return type == DataType::kFloat64 ? DataType::kFloat32 : type;
}

// Returns the type of the weights of all linear layers, or float32 if they are not all float16 or
// all bfloat16 numbers once they are read.
DataType TypeOfLinearWeights(const ModelDescription& model, const WeightPlaces& places) {
  std::optional<DataType> type;
  std::vector<ModelPart> parts = ListParts(model);
  for (const ModelPart& part : ListPartsAfter(model)) parts.push_back(part);
  for (const ModelPart& part : parts) {
    if (part.kind == PartKind::kScale) return DataType::kFloat32;  // products are not rounded
    const auto found = places.find(part.name + ".weight");
    if (part.kind != PartKind::kLinear || found == places.end()) continue;
    for (const WeightPlace& place : found->second) {
      if (place.data_type != type.value_or(place.data_type) || place.is_subtracted) {
        return DataType::kFloat32;
      }
      type = place.data_type;
    }
  }
  return type && ByteWidth(*type) == 2 ? *type : DataType::kFloat32;
}

}  // namespace

absl::Status WeightBinder::AddFiles(const std::string& prefix, absl::StatusOr<WeightFiles> files) {
  RETURN_IF_ERROR(files.status());
  for (SafetensorsFile& file : files->files) {
    for (auto& [name, tensor] : file.tensors) {
      const int index = static_cast<int>(files_.size());
      const bool is_new =
          entries_.emplace(prefix + name, Entry{index, name, std::move(tensor)}).second;
      if (!is_new) problems_.Add("tensor ", Quoted(prefix + name), ": in several files");
    }
    files_.push_back(std::move(file.file));
  }
  warnings_.insert(warnings_.end(), files->warnings.begin(), files->warnings.end());
  return absl::OkStatus();
}

const FileTensor* WeightBinder::Find(const std::string& name) const {
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : &entry->second.tensor;
}

const FileTensor* WeightBinder::FindMatrix(const std::string& name) const {
  const FileTensor* tensor = Find(name);
  const bool is_matrix = tensor != nullptr && tensor->shape.size() == 2 &&
                         std::min(tensor->shape[0], tensor->shape[1]) > 0;
  return is_matrix ? tensor : nullptr;
}

absl::Status WeightBinder::ReadBytes(const std::string& name, absl::Span<char> target) const {
  const Entry& entry = entries_.at(name);
  return files_[entry.file].ReadAt(entry.tensor.offset, target);
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
  if (place == places.end()) {
    if (spec.optional) return;
    Refuse("tensor ", JoinNames(places), ": missing; expected ", ShapeToString(spec.shape));
    return;
  }
  if (const std::optional<WeightPlace> bound = Place(spec.name, *place, spec.shape)) {
    places_[spec.name] = {*bound};
  }
}

void WeightBinder::BindDifference(const WeightSpec& spec, absl::Span<const TensorPart> places,
                                  std::optional<int64_t> subtracted) {
  Bind(spec, places);
  const auto bound = places_.find(spec.name);
  if (bound == places_.end() || !subtracted) return;
  TensorPart row = *std::find_if(places.begin(), places.end(), [&](const TensorPart& candidate) {
    return entries_.contains(candidate.name);
  });
  row.rows.index = *subtracted;
  std::optional<WeightPlace> place = Place(spec.name, row, spec.shape);
  if (!place) return;
  place->is_subtracted = true;
  bound->second.push_back(*std::move(place));
}

void WeightBinder::BindStacked(const WeightSpec& spec, absl::Span<const TensorPart> parts) {
  std::vector<int64_t> shape = spec.shape;
  shape[0] /= static_cast<int64_t>(parts.size());
  std::vector<WeightPlace> bound;
  std::vector<std::string> absent;
  for (const TensorPart& part : parts) {
    if (!entries_.contains(part.name)) {
      absent.push_back(part.name);
    } else if (const std::optional<WeightPlace> place = Place(spec.name, part, shape)) {
      bound.push_back(*place);
    }
  }
  if (spec.optional && absent.size() == parts.size()) return;
  for (const std::string& name : absent) {
    RefuseTensor(name, ShapeToString(ShapeInFile(parts.front(), shape)));
  }
  if (bound.size() == parts.size()) places_[spec.name] = std::move(bound);
}

std::optional<WeightPlace> WeightBinder::Place(const std::string& weight, const TensorPart& part,
                                               const std::vector<int64_t>& shape) {
  bound_[part.name].emplace(part.rows.index, weight);
  const Entry& entry = entries_.at(part.name);
  const std::vector<int64_t> expected = ShapeInFile(part, shape);
  const bool is_float = entry.tensor.data_type && IsFloat(*entry.tensor.data_type);
  if (WithoutLeadingOnes(entry.tensor.shape, expected.size()) != expected || !is_float) {
    RefuseTensor(part.name, "F32, F16, BF16 or F64 ", ShapeToString(expected));
    return std::nullopt;
  }
  const int64_t bytes = entry.tensor.bytes / part.rows.count;
  return WeightPlace{entry.file,
                     entry.name,
                     *entry.tensor.data_type,
                     entry.tensor.offset + part.rows.index * bytes,
                     part.rows.width * bytes / ByteWidth(*entry.tensor.data_type),
                     part.transposed && expected.size() == 2 ? expected[1] : 0};
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
    for (const auto& [index, weight] : bound->second) {
      if (absl::c_linear_search(listed.weights, weight)) {
        listed.is_interleaved = true;
      } else {
        listed.weights.push_back(weight);
      }
    }
  }
  return tensors;
}

absl::Status WeightBinder::CheckDigest(const std::string& expected) const {
  if (files_.empty()) {
    return absl::InvalidArgumentError("no weight file to check the SHA-256 of");
  }
  std::vector<std::pair<std::string, std::string>> digests;
  for (const InputFile& file : files_) {
    ASSIGN_OR_RETURN(std::string digest, Sha256(file));
    digests.emplace_back(file.path(), std::move(digest));
  }
  std::string found = digests.front().second;
  if (digests.size() > 1) {
    std::sort(digests.begin(), digests.end());
    std::string all;
    for (const auto& [path, digest] : digests) all += digest;
    ASSIGN_OR_RETURN(std::string digest, Sha256(all));
    found = std::move(digest);
  }
  if (found == expected) return absl::OkStatus();
  std::vector<std::string> paths;
  for (const auto& [path, digest] : digests) paths.push_back(path);
  return InvalidArgument(absl::StrJoin(paths, ", "), ": expected SHA-256 ", Quoted(expected),
                         "; got ", found);
}

absl::Status WeightBinder::Finish(const CheckpointOptions& options, Checkpoint& checkpoint) {
  checkpoint.tensors = ListTensors();
  checkpoint.warnings.insert(checkpoint.warnings.end(), warnings_.begin(), warnings_.end());
  RETURN_IF_ERROR(problems_.ToStatus());
  if (!options.weights_sha256.empty()) {
    RETURN_IF_ERROR(CheckDigest(options.weights_sha256));
  }
  if (checkpoint.description.embeddings && places_.contains("embeddings.word")) {
    checkpoint.description.embeddings->table_type = TypeOfTables(places_);
  }
  checkpoint.description.linear_type = TypeOfLinearWeights(checkpoint.description, places_);
  const AllowedValues allowed = {options.allow_nonfinite_weights,
                                 checkpoint.description.layer.norms.kind == NormKind::kRmsPlusOne};
  checkpoint.weights =
      std::make_unique<FileWeights>(std::move(files_), std::move(places_), allowed);
  return absl::OkStatus();
}

}  // namespace attendant
