// A model's compute type as the protocol tells it.
#pragma once

#include "attendant/v1/tensor.pb.h"
#include "engine/base/compute_type.h"

namespace attendant::server {

// Of what is multiplied.
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

// Message: v1::Execution or v1::GetModelResponse.
template <class Message>
void SetComputeType(ComputeType type, Message& message) {
  message.set_compute_dtype(ElementType(type));
  message.set_compute_type(Name(type));
}

}  // namespace attendant::server
