// A model's compute type as the protocol names it.
#pragma once

#include "attendant/v1/tensor.pb.h"
#include "engine/base/compute_type.h"

namespace attendant::server {

inline v1::DataType ToProto(ComputeType type) {
  switch (type) {
    case ComputeType::kF32:
      return v1::FLOAT32;
    case ComputeType::kBf16:
      return v1::BFLOAT16;
    case ComputeType::kInt8:
      return v1::INT8;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

}  // namespace attendant::server
