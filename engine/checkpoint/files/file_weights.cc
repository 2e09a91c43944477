#include "engine/checkpoint/files/file_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/kernels/convert.h"

namespace attendant {
namespace {

absl::Status TensorError(const InputFile& file, const WeightPlace& place,
                         const std::string& problem) {
  return InvalidArgument(file.path(), ": tensor ", Quoted(place.tensor), ": ", problem);
}

}  // namespace

absl::StatusOr<absl::Span<const WeightPlace>> FileWeights::PlacesOf(absl::string_view name,
                                                                    int64_t expected) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    return absl::NotFoundError(absl::StrCat("the model has no tensor '", name, "'"));
  }
  int64_t elements = 0;
  for (const WeightPlace& each : found->second) elements += each.is_subtracted ? 0 : each.elements;
  if (elements == expected) return found->second;
  const WeightPlace& place = found->second.front();
  return TensorError(
      files_[place.file], place,
      absl::StrCat("has ", elements, " elements for '", name, "', the target ", expected));
}

absl::Status FileWeights::Read(absl::string_view name, absl::Span<float> target) {
  ASSIGN_OR_RETURN(const auto places, PlacesOf(name, static_cast<int64_t>(target.size())));
  absl::Span<float> rest = target;
  for (const WeightPlace& each : places) {
    RETURN_IF_ERROR(each.is_subtracted ? Subtract(each, target)
                                       : ReadPlace(each, rest.first(each.elements)));
    if (!each.is_subtracted) rest.remove_prefix(each.elements);
  }
  const WeightPlace& place = places.front();
  const InputFile& file = files_[place.file];
  const bool refuses_zeros = !options_.allow_zero_norms && absl::EndsWith(name, "norm.weight");
  if (refuses_zeros && std::all_of(target.begin(), target.end(), [](float x) { return x == 0; })) {
    return TensorError(file, place, "expected a norm weight with non-zero values; all are zero");
  }
  return file.CheckUnchanged();
}

absl::Status FileWeights::Subtract(const WeightPlace& place, absl::Span<float> target) {
  std::vector<float> values(place.elements);
  RETURN_IF_ERROR(ReadPlace(place, absl::MakeSpan(values)));
  for (size_t i = 0; i < values.size(); ++i) target[i] -= values[i];
  return absl::OkStatus();
}

absl::StatusOr<bool> FileWeights::ReadStored(absl::string_view name, DataType type,
                                             absl::Span<char> target) {
  const int64_t width = ByteWidth(type);
  ASSIGN_OR_RETURN(const auto places, PlacesOf(name, static_cast<int64_t>(target.size()) / width));
  for (const WeightPlace& each : places) {
    if (each.data_type != type || each.transposed_columns > 0 || each.is_subtracted) return false;
  }
  for (const WeightPlace& each : places) {
    for (int64_t first = 0; first < each.elements; first += kChunkBytes / width) {
      const int64_t count = std::min(kChunkBytes / width, each.elements - first);
      values_.resize(count);
      RETURN_IF_ERROR(ReadChunk(each, first, absl::MakeSpan(values_)));
      std::memcpy(target.data(), chunk_.data(), count * width);
      target.remove_prefix(count * width);
    }
  }
  RETURN_IF_ERROR(files_[places.front().file].CheckUnchanged());
  return true;
}

absl::Status FileWeights::ReadPlace(const WeightPlace& place, absl::Span<float> target) {
  const int64_t step = kChunkBytes / ByteWidth(place.data_type);
  for (int64_t first = 0; first < place.elements; first += step) {
    const int64_t count = std::min(step, place.elements - first);
    const bool transposed = place.transposed_columns > 0;
    if (transposed) values_.resize(count);
    const absl::Span<float> chunk =
        transposed ? absl::MakeSpan(values_) : target.subspan(first, count);
    RETURN_IF_ERROR(ReadChunk(place, first, chunk));
    if (!transposed) continue;
    const int64_t columns = place.transposed_columns, rows = place.elements / columns;
    for (int64_t i = 0; i < count; ++i) {
      target[(first + i) % columns * rows + (first + i) / columns] = chunk[i];
    }
  }
  return absl::OkStatus();
}

absl::Status FileWeights::ReadChunk(const WeightPlace& place, int64_t first,
                                    absl::Span<float> target) {
  const int64_t width = ByteWidth(place.data_type);
  chunk_.resize(kChunkBytes);
  const absl::Span<char> bytes = absl::MakeSpan(chunk_).first(target.size() * width);
  RETURN_IF_ERROR(files_[place.file].ReadAt(place.offset + first * width, bytes));
  const auto count = static_cast<int64_t>(target.size());
  ToFloat(place.data_type, bytes.data(), count, target.data());
  if (AllFinite(target.data(), count)) return absl::OkStatus();
  return CheckChunk(place, first, target);
}

absl::Status FileWeights::CheckChunk(const WeightPlace& place, int64_t first,
                                     absl::Span<const float> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    double in_file = values[i];
    if (place.data_type == DataType::kFloat64) {
      std::memcpy(&in_file, chunk_.data() + i * sizeof(in_file), sizeof(in_file));
    }
    const int64_t element = first + static_cast<int64_t>(i);
    if (std::isfinite(in_file)) {
      return TensorError(files_[place.file], place,
                         absl::StrCat("expected values that float32 holds; got ", in_file,
                                      " at element ", element));
    }
    if (!options_.allow_nonfinite) {
      return TensorError(
          files_[place.file], place,
          absl::StrCat("expected finite values; got ", in_file, " at element ", element));
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant
