// Checks a tensor's head against its data before anything is allocated for it.
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

// A tensor with exactly the bytes that dtype and shape require.
struct CheckedTensor {
  DataType dtype = DataType::kFloat32;
  std::vector<int64_t> shape;  // every dimension >= 1
  Payload data;

  int64_t dim(size_t i) const { return shape[i]; }
};

enum class ElementKind { kFloat, kIntegerOrBool, kInteger };

// A received tensor: field name, parsed head and separate data (null if absent).
struct WireTensor {
  std::string field;
  const v1::Tensor& head;
  const Payload* data;
};

// Returns INVALID_ARGUMENT for a dtype of another kind, a dimension below 1, or a size that
// overflows or does not match the data.
absl::StatusOr<CheckedTensor> CheckTensor(const WireTensor& tensor, ElementKind kind);

// Checks that `tensor` has exactly `shape`; `letters` explain it in errors: "[B, S] = ".
absl::Status CheckShape(const WireTensor& tensor, absl::Span<const int64_t> shape,
                        const std::string& letters);

// Returns the element type of a response: `wanted`, or `fallback` if unspecified. Returns
// INVALID_ARGUMENT unless it is a float type.
absl::StatusOr<DataType> CheckOutputDtype(v1::DataType wanted, DataType fallback);

v1::DataType ToWire(DataType dtype);
std::optional<DataType> FromWire(v1::DataType dtype);  // nullopt if not a tensor type

// Finds the tensor data of a parsed request; `prefix` is the path from the message to the request
// in it.
class RequestPayloads {
 public:
  RequestPayloads(const PayloadsByPath& payloads, std::vector<int> prefix)
      : payloads_(payloads), prefix_(std::move(prefix)) {}

  // By the tensor's field number.
  WireTensor Of(const std::string& field, const v1::Tensor& head, int number) const;

  // Returns the elements of the repeated bytes or string field with this number, in order.
  std::vector<Payload> AllOf(int number) const;

  // Returns the payloads of the message in the field with this number.
  RequestPayloads Inside(int number) const {
    std::vector<int> prefix = prefix_;
    prefix.push_back(number);
    return RequestPayloads(payloads_, std::move(prefix));
  }

 private:
  const PayloadsByPath& payloads_;
  std::vector<int> prefix_;
};

}  // namespace attendant::server
