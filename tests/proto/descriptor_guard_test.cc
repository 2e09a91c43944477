// Tests that the protocol stays compatible with the committed descriptor set. Refresh the set after
// // an addition to the protos:
//   cmake --build --preset release --target refresh_descriptor_set
#include "tests/proto/descriptor_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "attendant/v1/encoder_service.pb.h"

namespace attendant {
namespace descriptor_guard_test {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

FileDescriptorSet Committed() {
  std::ifstream file(ATTENDANT_DESCRIPTOR_SET, std::ios::binary);
  FileDescriptorSet set;
  EXPECT_TRUE(set.ParseFromIstream(&file)) << ATTENDANT_DESCRIPTOR_SET;
  EXPECT_EQ(set.file_size(), 2);
  return set;
}

// Keeps the generated code of the protos in the program.
const DescriptorPool& Current() { return *v1::AttendRequest::descriptor()->file()->pool(); }

TEST(DescriptorGuardTest, ProtocolKeepsWhatWasCommitted) {
  EXPECT_THAT(FindBreaks(Committed(), Current()), IsEmpty());
}

// Changes the committed set, so that it has something that the current protocol lacks.
std::vector<std::string> BreaksAfter(
    const std::function<void(FileDescriptorProto& tensor, FileDescriptorProto& service)>& change) {
  FileDescriptorSet set = Committed();
  change(*set.mutable_file(0), *set.mutable_file(1));
  return FindBreaks(set, Current());
}

TEST(DescriptorGuardTest, FindsFieldBreaks) {
  EXPECT_THAT(BreaksAfter([](auto& tensor, auto&) {
                tensor.mutable_message_type(0)->mutable_field(2)->set_number(9);
              }),
              ElementsAre("attendant.v1.Tensor field 9 is missing"));
  EXPECT_THAT(BreaksAfter([](auto& tensor, auto&) {
                tensor.mutable_message_type(0)->mutable_field(2)->set_name("bytes");
              }),
              ElementsAre("attendant.v1.Tensor field 3 was bytes  bytes, is bytes  data"));
  EXPECT_THAT(BreaksAfter([](auto& tensor, auto&) {
                auto& shape = *tensor.mutable_message_type(0)->mutable_field(1);
                shape.set_type(google::protobuf::FieldDescriptorProto::TYPE_UINT64);
              }),
              ElementsAre("attendant.v1.Tensor field 2 was repeated uint64  shape packed, is "
                          "repeated int64  shape packed"));
  EXPECT_THAT(BreaksAfter([](auto& tensor, auto&) {
                auto& shape = *tensor.mutable_message_type(0)->mutable_field(1);
                shape.set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
              }),
              ElementsAre("attendant.v1.Tensor field 2 was int64  shape, is repeated int64  shape "
                          "packed"));
}

TEST(DescriptorGuardTest, FindsMissingTypesAndValues) {
  EXPECT_THAT(
      BreaksAfter([](auto& tensor, auto&) {
        tensor.add_message_type()->set_name("Gone");
        tensor.mutable_enum_type(0)->mutable_value(2)->set_number(99);
        auto& value = *tensor.mutable_enum_type(0)->add_value();
        value.set_name("FLOAT8");
        value.set_number(100);
        tensor.add_enum_type()->set_name("GoneToo");
        tensor.mutable_enum_type(1)->add_value()->set_name("NONE");
        tensor.mutable_enum_type(1)->mutable_value(0)->set_number(0);
      }),
      ElementsAre("message attendant.v1.Gone is missing", "attendant.v1.FLOAT16 was 99, is 2",
                  "enum value attendant.v1.FLOAT8 is missing",
                  "enum attendant.v1.GoneToo is missing"));
}

TEST(DescriptorGuardTest, FindsServiceBreaks) {
  EXPECT_THAT(BreaksAfter([](auto&, auto& service) {
                service.mutable_service(0)->mutable_method(0)->set_name("Attention");
                service.mutable_service(0)->mutable_method(4)->set_server_streaming(false);
                service.add_service()->set_name("GoneService");
              }),
              ElementsAre("method attendant.v1.EncoderService.Attention is missing",
                          "attendant.v1.EncoderService.EncodeStream was stream "
                          "attendant.v1.EncodeStreamRequest returns "
                          "attendant.v1.EncodeStreamResponse, is stream "
                          "attendant.v1.EncodeStreamRequest returns stream "
                          "attendant.v1.EncodeStreamResponse",
                          "service attendant.v1.GoneService is missing"));
  EXPECT_THAT(BreaksAfter([](auto&, auto& service) { service.set_name("attendant/v1/old.proto"); }),
              ElementsAre("file attendant/v1/old.proto is missing"));
}

TEST(DescriptorGuardTest, AllowsAdditions) {
  EXPECT_THAT(BreaksAfter([](auto& tensor, auto& service) {
                tensor.mutable_message_type(0)->mutable_field()->RemoveLast();
                tensor.mutable_enum_type(0)->mutable_value()->RemoveLast();
                service.mutable_service(0)->mutable_method()->RemoveLast();
              }),
              IsEmpty());
}

}  // namespace descriptor_guard_test
}  // namespace attendant
