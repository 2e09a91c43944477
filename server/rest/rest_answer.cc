#include "server/rest/rest_answer.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/json_answer.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string Dump(const RestJson& document) {
  // Text from clients may be invalid UTF-8, which is replaced.
  return document.dump(-1, ' ', false, RestJson::error_handler_t::replace);
}

constexpr std::pair<absl::StatusCode, unsigned> kStatuses[] = {
    {absl::StatusCode::kOk, 200},
    {absl::StatusCode::kInvalidArgument, 400},
    {absl::StatusCode::kFailedPrecondition, 400},
    {absl::StatusCode::kUnauthenticated, 401},
    {absl::StatusCode::kPermissionDenied, 403},
    {absl::StatusCode::kNotFound, 404},
    {absl::StatusCode::kOutOfRange, 413},
    {absl::StatusCode::kResourceExhausted, 429},
    {absl::StatusCode::kCancelled, 499},
    {absl::StatusCode::kUnimplemented, 501},
    {absl::StatusCode::kUnavailable, 503},
    {absl::StatusCode::kDeadlineExceeded, 504}};

unsigned HttpStatusOf(absl::StatusCode code) {
  for (const auto& [known, status] : kStatuses) {
    if (known == code) return status;
  }
  return 500;
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

}  // namespace attendant::server
