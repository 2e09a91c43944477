// The element types of the Open Inference Protocol, beside those of attendant.v1.
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

// That of texts.
inline constexpr char kTextDatatype[] = "BYTES";

// Null: there is none of this name here. FP64 and BYTES, which is of texts alone, have no
// counterpart.
const Datatype* FindDatatype(absl::string_view name);

// `type` is one that a tensor of a response may have.
const char* DatatypeName(v1::DataType type);

// "BOOL, UINT8, …", for messages.
std::string DatatypeNames();

}  // namespace attendant::server
