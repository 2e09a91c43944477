// Conversion of a model's compute type to its representation in the protocol.
#pragma once

#include "attendant/v1/tensor.pb.h"
#include "engine/base/compute_type.h"

namespace attendant::server {

// Returns the type of the elements that the matrix products multiply.
inline v1::DataType ElementType(ComputeType type) {
  switch (type) {
    case ComputeType::kF32:
      return v1::FLOAT32;
    case ComputeType::kBf16x3:
    case ComputeType::kBf16:
      return v1::BFLOAT16;
    case ComputeType::kInt8:
      return v1::INT8;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

// Sets compute_dtype and compute_type in `message`, a v1::Execution or a v1::GetModelResponse.
template <class Message>
void SetComputeType(ComputeType type, Message& message) {
  message.set_compute_dtype(ElementType(type));
  message.set_compute_type(Name(type));
}

}  // namespace attendant::server
