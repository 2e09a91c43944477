// Checks a tensor's head against its data, before anything is allocated for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attendant/v1/tensor.pb.h"
#include "engine/base/data_type.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

// A tensor whose data has exactly the bytes that dtype and shape demand.
struct CheckedTensor {
  DataType dtype = DataType::kFloat32;
  std::vector<int64_t> shape;  // every dimension >= 1
  Payload data;

  int64_t dim(size_t i) const { return shape[i]; }
};

enum class ElementKind { kFloat, kIntegerOrBool, kInteger };

// A tensor as it came: the field's name, the parsed head, and the data apart from it (null: none).
struct WireTensor {
  std::string field;
  const v1::Tensor& head;
  const Payload* data;
};

// INVALID_ARGUMENT: a dtype of another kind, a dimension below 1, a size that overflows or differs
// from the data's.
absl::StatusOr<CheckedTensor> CheckTensor(const WireTensor& tensor, ElementKind kind);

// Refuses unless `tensor` has exactly `shape`; `letters` explain it: "[B, S] = ".
absl::Status CheckShape(const WireTensor& tensor, absl::Span<const int64_t> shape,
                        const std::string& letters);

// The element type of a response: `wanted`, or `fallback` if unspecified. INVALID_ARGUMENT: not a
// float type.
absl::StatusOr<DataType> CheckOutputDtype(v1::DataType wanted, DataType fallback);

v1::DataType ToWire(DataType dtype);
std::optional<DataType> FromWire(v1::DataType dtype);  // none: no type of a tensor

// Finds the data of the tensors of one parsed request; `prefix` leads from the message to the
// request in it.
class RequestPayloads {
 public:
  RequestPayloads(const std::vector<TensorPayload>& payloads, std::vector<int> prefix)
      : payloads_(payloads), prefix_(std::move(prefix)) {}

  // By the number of the tensor's field.
  WireTensor Of(const std::string& field, const v1::Tensor& head, int number) const;

  // The elements of the field of repeated bytes or texts with this number, in order.
  std::vector<Payload> AllOf(int number) const;

  // Those of the message in the field of this number.
  RequestPayloads Inside(int number) const {
    std::vector<int> prefix = prefix_;
    prefix.push_back(number);
    return RequestPayloads(payloads_, std::move(prefix));
  }

 private:
  const std::vector<TensorPayload>& payloads_;
  std::vector<int> prefix_;
};

}  // namespace attendant::server
