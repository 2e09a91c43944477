#include "tests/server/wire/agreement.h"

#include <google/protobuf/util/message_differencer.h>

#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/tensor.pb.h"
#include "server/wire/request_codec.h"

namespace attendant::server {
std::string ToString(const Payload& payload) {
  std::string bytes(static_cast<size_t>(payload.size()), '\0');
  payload.CopyTo(0, payload.size(), bytes.data());
  return bytes;
}

namespace {

using google::protobuf::Message;
using google::protobuf::util::DefaultFieldComparator;
using google::protobuf::util::MessageDifferencer;

// Puts the payload into its field. Returns an error if something is there already.
std::string Place(Message& message, const std::vector<int>& path, const Payload& data) {
  Message* at = &message;
  for (const int number : path) {
    const google::protobuf::FieldDescriptor* field = at->GetDescriptor()->FindFieldByNumber(number);
    const google::protobuf::Reflection& reflection = *at->GetReflection();
    if (field->is_repeated()) {  // of bytes or texts; the index follows
      if (reflection.FieldSize(*at, field) != path.back()) return "elements out of order";
      reflection.AddString(at, field, ToString(data));
      return "";
    }
    at = reflection.MutableMessage(at, field);
  }
  auto& tensor = static_cast<v1::Tensor&>(*at);
  if (!tensor.data().empty()) return "tensor data in the parsed message: " + tensor.DebugString();
  tensor.set_data(ToString(data));
  return "";
}

// Whether protobuf refuses the message because of the elements of a field of texts, which the codec
// leaves as they came.
bool HasOtherThanUtf8(const Message& head, const PayloadsByPath& payloads) {
  const std::unique_ptr<Message> whole(head.New());
  whole->CopyFrom(head);
  for (const auto& [path, data] : payloads) {
    if (!Place(*whole, path, data).empty()) return false;
  }
  const std::unique_ptr<Message> parsed(head.New());
  return !parsed->ParseFromString(whole->SerializeAsString());
}

}  // namespace

std::string FindDisagreement(const Message& prototype, const std::string& bytes,
                             const grpc::ByteBuffer& buffer) {
  const std::unique_ptr<Message> expected(prototype.New());
  const std::unique_ptr<Message> actual(prototype.New());
  const bool accepts = expected->ParseFromString(bytes);
  const auto payloads = ParseRequest(buffer, std::numeric_limits<int64_t>::max(), *actual);
  if (payloads.ok() && !accepts && HasOtherThanUtf8(*actual, *payloads)) return "";
  if (payloads.ok() != accepts) {
    return absl::StrCat("protobuf ", accepts ? "accepts" : "refuses", ", the codec says ",
                        payloads.status().ToString());
  }
  if (!accepts) return "";
  for (const auto& [path, data] : *payloads) {
    const std::string error = Place(*actual, path, data);
    if (!error.empty()) return error;
  }
  // Random floats are sometimes NaN, which is not equal to itself.
  DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  MessageDifferencer differencer;
  differencer.set_field_comparator(&comparator);
  if (differencer.Compare(*actual, *expected)) return "";
  return absl::StrCat("protobuf reads\n", expected->DebugString(), "the codec reads\n",
                      actual->DebugString());
}

}  // namespace attendant::server
