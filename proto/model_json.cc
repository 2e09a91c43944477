#include "proto/model_json.h"

#include <google/protobuf/reflection.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"

namespace attendant::proto {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

Json OfMessage(const Message& message);

Json OfElement(int64_t value) { return value; }
Json OfElement(const std::string& value) { return value; }
Json OfElement(const Message& value) { return OfMessage(value); }
Json OfElement(const google::protobuf::EnumValueDescriptor& value) {
  return value.number() == 0 ? Json(nullptr) : Json(absl::AsciiStrToLower(value.name()));
}

template <typename T>
Json OfElements(const Message& message, const FieldDescriptor* field) {
  Json list = Json::array();
  for (const T& element : message.GetReflection()->GetRepeatedFieldRef<T>(message, field)) {
    list.push_back(OfElement(element));
  }
  return list;
}

// These two cover all types used in descriptions, as a test checks.
Json OfRepeated(const Message& message, const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return OfElements<int32_t>(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return OfElements<int64_t>(message, field);
    case FieldDescriptor::CPPTYPE_STRING:
      return OfElements<std::string>(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return OfElements<Message>(message, field);
    default:
      return nullptr;
  }
}

Json OfSingle(const Message& message, const FieldDescriptor* field) {
  const google::protobuf::Reflection& fields = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return fields.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return fields.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return ToJson(fields.GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return fields.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return OfElement(*fields.GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return fields.GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!fields.HasField(message, field)) return nullptr;
      return OfMessage(fields.GetMessage(message, field));
    default:
      return nullptr;
  }
}

Json OfMessage(const Message& message) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const bool is_pair = &type == v1::BlockPair::descriptor();
  Json json = is_pair ? Json::array() : Json::object();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    Json value = field->is_repeated() ? OfRepeated(message, field) : OfSingle(message, field);
    if (is_pair) {
      json.push_back(std::move(value));
    } else {
      json[field->name()] = std::move(value);
    }
  }
  return json;
}

}  // namespace

Json ToJson(const v1::GetModelResponse& model) { return OfMessage(model); }

Json ToJson(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof(digits), value);
  double shortest = 0;
  std::from_chars(digits, written.ptr, shortest);
  return shortest;
}

}  // namespace attendant::proto
