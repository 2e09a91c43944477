// Element types of the Open Inference Protocol, and their types in attendant.v1.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "attendant/v1/tensor.pb.h"
#include "inference/inference_service.pb.h"

namespace attendant::server {

struct Datatype {
  const char* name;
  inference::DataType config;  // in a model's configuration
  v1::DataType wire;
};

// The datatype of texts.
inline constexpr char kTextDatatype[] = "BYTES";

// Returns null for unknown names and for FP64 and BYTES (texts only), which have no counterpart.
const Datatype* FindDatatype(absl::string_view name);

// `type` must be a possible type of a response tensor.
const char* DatatypeName(v1::DataType type);

// Returns "BOOL, UINT8, …", for messages.
std::string DatatypeNames();

}  // namespace attendant::server
