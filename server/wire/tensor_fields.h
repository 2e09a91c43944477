// The fields of the protocol's messages that contain tensor data.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <vector>

namespace attendant::server {

// A field that leads to tensor data: a message that can contain a Tensor, the Tensor, its `data`,
// or repeated bytes or strings.
struct TensorField {
  std::map<int, TensorField> fields;  // the fields inside this one, by field number
  int payload = -1;                   // for data: index in TensorFields::payloads; otherwise -1
};

// A field with tensor data.
struct PayloadField {
  std::vector<int> path;  // field numbers from the message to the Tensor, or to the repeated field
  bool repeated = false;
};

// Every `data` of a Tensor reachable from a message type through singular fields, and every
// repeated bytes or string field there, because its elements may be as large. Excludes other
// repeated fields and oneofs, where a field number does not identify one tensor, and recursive
// fields.
struct TensorFields {
  TensorField root;
  std::vector<PayloadField> payloads;
};

// Returns the tensor fields of a message type, computed once and never freed. Thread-safe.
const TensorFields& TensorFieldsOf(const google::protobuf::Descriptor* type);

}  // namespace attendant::server
