// The fields of the protocol's messages that hold tensor data.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <vector>

namespace attendant::server {

// A field on the way to tensor data: a message that can hold a Tensor, the Tensor itself, its
// `data`, or repeated bytes or texts.
struct TensorField {
  std::map<int, TensorField> fields;  // the fields inside this one, by field number
  int payload = -1;                   // for data: index in TensorFields::payloads; otherwise -1
};

// A field with tensor data.
struct PayloadField {
  std::vector<int> path;  // field numbers from the message to the Tensor, or to the repeated field
  bool repeated = false;
};

// Every `data` of a Tensor that can be reached from a message type through singular fields, and
// every field of repeated bytes or texts there, whose elements may be as large. Other repeated
// fields and oneofs are left out, because there a field number does not identify one tensor. So are
// recursive fields, whose type is one of those that contain them.
struct TensorFields {
  TensorField root;
  std::vector<PayloadField> payloads;
};

// Returns the tensor fields of a message type. They are computed once per type and never freed.
// Thread-safe.
const TensorFields& TensorFieldsOf(const google::protobuf::Descriptor* type);

}  // namespace attendant::server
