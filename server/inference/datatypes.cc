#include "server/inference/datatypes.h"

#include "absl/strings/str_join.h"

namespace attendant::server {
namespace {

constexpr Datatype kDatatypes[] = {
    {"BOOL", inference::TYPE_BOOL, v1::BOOL},       {"UINT8", inference::TYPE_UINT8, v1::UINT8},
    {"UINT16", inference::TYPE_UINT16, v1::UINT16}, {"UINT32", inference::TYPE_UINT32, v1::UINT32},
    {"UINT64", inference::TYPE_UINT64, v1::UINT64}, {"INT8", inference::TYPE_INT8, v1::INT8},
    {"INT16", inference::TYPE_INT16, v1::INT16},    {"INT32", inference::TYPE_INT32, v1::INT32},
    {"INT64", inference::TYPE_INT64, v1::INT64},    {"FP16", inference::TYPE_FP16, v1::FLOAT16},
    {"FP32", inference::TYPE_FP32, v1::FLOAT32},    {"BF16", inference::TYPE_BF16, v1::BFLOAT16},
};

}  // namespace

const Datatype* FindDatatype(absl::string_view name) {
  for (const Datatype& datatype : kDatatypes) {
    if (datatype.name == name) return &datatype;
  }
  return nullptr;
}

const char* DatatypeName(v1::DataType type) {
  for (const Datatype& datatype : kDatatypes) {
    if (datatype.wire == type) return datatype.name;
  }
  return "";
}

std::string DatatypeNames() {
  return absl::StrJoin(kDatatypes, ", ", [](std::string* text, const Datatype& datatype) {
    text->append(datatype.name);
  });
}

}  // namespace attendant::server
