#include "server/tensors/tensor_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr std::pair<v1::DataType, DataType> kWireTypes[] = {
    {v1::FLOAT32, DataType::kFloat32},   {v1::FLOAT16, DataType::kFloat16},
    {v1::BFLOAT16, DataType::kBFloat16}, {v1::BOOL, DataType::kBool},
    {v1::INT8, DataType::kInt8},         {v1::UINT8, DataType::kUInt8},
    {v1::INT16, DataType::kInt16},       {v1::UINT16, DataType::kUInt16},
    {v1::INT32, DataType::kInt32},       {v1::UINT32, DataType::kUInt32},
    {v1::INT64, DataType::kInt64},       {v1::UINT64, DataType::kUInt64},
};

bool Matches(DataType dtype, ElementKind kind) {
  switch (kind) {
    case ElementKind::kFloat:
      return IsFloat(dtype);
    case ElementKind::kIntegerOrBool:
      return !IsFloat(dtype);
    case ElementKind::kInteger:
      return !IsFloat(dtype) && dtype != DataType::kBool;
  }
  return false;
}

const char* Describe(ElementKind kind) {
  switch (kind) {
    case ElementKind::kFloat:
      return "FLOAT32, FLOAT16 or BFLOAT16";
    case ElementKind::kIntegerOrBool:
      return "BOOL or an integer type";
    case ElementKind::kInteger:
      return "an integer type";
  }
  return "";
}

std::string WireName(v1::DataType dtype) {
  return v1::DataType_IsValid(dtype) ? v1::DataType_Name(dtype)
                                     : absl::StrCat("the unknown type ", static_cast<int>(dtype));
}

absl::Span<const int64_t> ShapeOf(const v1::Tensor& head) {
  return absl::MakeConstSpan(head.shape().data(), static_cast<size_t>(head.shape_size()));
}

}  // namespace

absl::StatusOr<CheckedTensor> CheckTensor(const WireTensor& tensor, ElementKind kind) {
  const std::optional<DataType> dtype = FromWire(tensor.head.dtype());
  if (!dtype || !Matches(*dtype, kind)) {
    return InvalidField(tensor.field + ".dtype", Describe(kind), WireName(tensor.head.dtype()));
  }
  const absl::Span<const int64_t> shape = ShapeOf(tensor.head);
  for (int64_t dim : shape) {
    if (dim >= 1) continue;
    return InvalidField(tensor.field + ".shape", "dimensions of at least 1", ShapeText(shape));
  }
  const CheckedSize bytes = ByteCount(shape, *dtype);
  if (!bytes.ok())
    return InvalidField(tensor.field + ".shape", "a size that fits into 64 bits", ShapeText(shape));
  const int64_t given = tensor.data == nullptr ? 0 : tensor.data->size();
  if (given != bytes.value()) {
    return InvalidField(tensor.field + ".data",
                        absl::StrCat(bytes.value(), " bytes for ", WireName(tensor.head.dtype()),
                                     " ", ShapeText(shape)),
                        absl::StrCat(given, " bytes"));
  }
  return CheckedTensor{
      *dtype, {shape.begin(), shape.end()}, tensor.data == nullptr ? Payload() : *tensor.data};
}

absl::Status CheckShape(const WireTensor& tensor, absl::Span<const int64_t> shape,
                        const std::string& letters) {
  const absl::Span<const int64_t> given = ShapeOf(tensor.head);
  if (given == shape) return absl::OkStatus();
  return InvalidField(tensor.field + ".shape", letters + ShapeText(shape), ShapeText(given));
}

absl::StatusOr<DataType> CheckOutputDtype(v1::DataType wanted, DataType fallback) {
  if (wanted == v1::DATA_TYPE_UNSPECIFIED) return fallback;
  const std::optional<DataType> dtype = FromWire(wanted);
  if (dtype && IsFloat(*dtype)) return *dtype;
  return InvalidField("output_dtype", Describe(ElementKind::kFloat), WireName(wanted));
}

v1::DataType ToWire(DataType dtype) {
  for (const auto& [wire, engine] : kWireTypes) {
    if (engine == dtype) return wire;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

std::optional<DataType> FromWire(v1::DataType dtype) {
  for (const auto& [wire, engine] : kWireTypes) {
    if (wire == dtype) return engine;
  }
  return std::nullopt;
}

std::vector<Payload> RequestPayloads::AllOf(int number) const {
  std::vector<int> path = prefix_;
  path.insert(path.end(), {number, 0});
  std::vector<Payload> found;
  for (auto at = payloads_.find(path); at != payloads_.end(); at = payloads_.find(path)) {
    found.push_back(at->second);
    ++path.back();
  }
  return found;
}

WireTensor RequestPayloads::Of(const std::string& field, const v1::Tensor& head, int number) const {
  std::vector<int> path = prefix_;
  path.push_back(number);
  const auto found = payloads_.find(path);
  return {field, head, found == payloads_.end() ? nullptr : &found->second};
}

}  // namespace attendant::server
