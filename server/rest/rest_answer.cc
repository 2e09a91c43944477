#include "server/rest/rest_answer.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/http/json_answer.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string Dump(const RestJson& document) {
  // What came from a client is UTF-8 or replaced.
  return document.dump(-1, ' ', false, RestJson::error_handler_t::replace);
}

unsigned HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kOutOfRange:
      return 413;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

// One value of a field; `index` is -1 for a field that is not repeated.
RestJson ValueOf(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& of = *message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? of.GetInt32(message, field) : of.GetRepeatedInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return one ? of.GetInt64(message, field) : of.GetRepeatedInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? of.GetUInt32(message, field) : of.GetRepeatedUInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return one ? of.GetUInt64(message, field) : of.GetRepeatedUInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? of.GetBool(message, field) : of.GetRepeatedBool(message, field, index);
    case FieldDescriptor::CPPTYPE_STRING:
      return one ? of.GetString(message, field) : of.GetRepeatedString(message, field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return std::string(
          (one ? of.GetEnum(message, field) : of.GetRepeatedEnum(message, field, index))->name());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(one ? of.GetMessage(message, field)
                        : of.GetRepeatedMessage(message, field, index));
    default:
      return nullptr;
  }
}

}  // namespace

HttpAnswer JsonAnswer(const RestJson& document, unsigned status) {
  HttpAnswer answer = JsonBody(Dump(document));
  answer.status = status;
  return answer;
}

HttpAnswer ErrorAnswer(const absl::Status& status, absl::Duration retry_after) {
  HttpAnswer answer =
      JsonAnswer({{"error", std::string(status.message())}}, HttpStatusOf(status.code()));
  if (answer.status == 401) answer.authenticate = "Bearer";
  const std::string reason = ReasonOf(status);
  if (reason.empty()) return answer;
  answer.headers.emplace_back("Attendant-Reason", reason);
  if (answer.status == 429 || answer.status == 503) {
    const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(retry_after, absl::Seconds(1)));
    answer.headers.emplace_back("Retry-After", absl::StrCat(std::max<int64_t>(1, seconds)));
  }
  return answer;
}

RestJson ToJson(const Message& message) {
  RestJson document = RestJson::object();
  const Reflection& of = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const std::string name(field->name());
    if (field->is_map() || field->type() == FieldDescriptor::TYPE_BYTES) continue;
    if (field->is_repeated()) {
      document[name] = RestJson::array();
      for (int index = 0; index < of.FieldSize(message, field); ++index) {
        document[name].push_back(ValueOf(message, field, index));
      }
    } else if (!field->has_presence() || of.HasField(message, field)) {
      document[name] = ValueOf(message, field, -1);
    }
  }
  return document;
}

std::string JsonText(const std::string& text) { return Dump(text); }

}  // namespace attendant::server
