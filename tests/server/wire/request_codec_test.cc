#include "server/wire/request_codec.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <ostream>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "attendant/v1/encoder_service.pb.h"
#include "inference/inference_service.pb.h"
#include "tests/server/wire/agreement.h"
#include "tests/server/wire/random_wire.h"

namespace attendant::server {
namespace request_codec_test {

using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

// Null: there is none.
const Payload* FindPayload(const PayloadsByPath& payloads, const std::vector<int>& path) {
  const auto found = payloads.find(path);
  return found == payloads.end() ? nullptr : &found->second;
}

void ExpectAgreement(const Message& prototype, const std::string& bytes,
                     const grpc::ByteBuffer& buffer) {
  ASSERT_EQ(FindDisagreement(prototype, bytes, buffer), "") << absl::BytesToHexString(bytes);
}

// The generated parser logs strings that are not UTF-8, of which these tests make thousands.
class RequestCodecTest : public ::testing::Test {
 private:
  google::protobuf::LogSilencer silencer_;
};

class RequestAgreementTest : public RequestCodecTest,
                             public ::testing::WithParamInterface<const Message*> {};

INSTANTIATE_TEST_SUITE_P(Requests, RequestAgreementTest,
                         ::testing::Values(&v1::AttendRequest::default_instance(),
                                           &v1::EncodeRequest::default_instance(),
                                           &v1::EncodeStreamRequest::default_instance(),
                                           &v1::PutMemoryRequest::default_instance(),
                                           &inference::ModelInferRequest::default_instance()),
                         [](const auto& test) { return test.param->GetDescriptor()->name(); });

TEST_P(RequestAgreementTest, RandomMessagesCutAtRandom) {
  RandomWire random(1);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = random.Message(GetParam()->GetDescriptor());
    const std::unique_ptr<Message> message(GetParam()->New());
    accepted += message->ParseFromString(bytes);
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement(*GetParam(), bytes, random.Slices(bytes)));
  }
  EXPECT_GT(accepted, 10000);
  EXPECT_LT(accepted, 19900);
}

TEST_P(RequestAgreementTest, SlicesCutAtEveryByte) {
  RandomWire random(2);
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = random.Message(GetParam()->GetDescriptor());
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement(*GetParam(), bytes, InSlicesOf(bytes, 1)));
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      ASSERT_NO_FATAL_FAILURE(ExpectAgreement(*GetParam(), bytes, CutAt(bytes, {cut})));
    }
  }
}

TEST_P(RequestAgreementTest, MutatedMessages) {
  RandomWire random(3);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = random.Mutate(random.Message(GetParam()->GetDescriptor()));
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement(*GetParam(), bytes, random.Slices(bytes)));
  }
}

TEST_P(RequestAgreementTest, TruncatedMessages) {
  RandomWire random(4);
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = random.Message(GetParam()->GetDescriptor());
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string start = bytes.substr(0, size);
      ASSERT_NO_FATAL_FAILURE(ExpectAgreement(*GetParam(), start, random.Slices(start)));
    }
  }
}

TEST_P(RequestAgreementTest, Noise) {
  RandomWire random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(static_cast<size_t>(random.Below(12)), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement(*GetParam(), bytes, random.Slices(bytes)));
  }
}

std::string Nested(int depth, const std::string& open, const std::string& close) {
  std::string bytes;
  for (int i = 0; i < depth; ++i) bytes += open;
  for (int i = 0; i < depth; ++i) bytes += close;
  return bytes;
}

TEST_F(RequestCodecTest, GroupsNestAsDeepAsProtobufAllows) {
  const auto accepts = [](const std::string& bytes) {
    ExpectAgreement(v1::AttendRequest::default_instance(), bytes, InSlicesOf(bytes, 7));
    v1::AttendRequest request;
    return ParseRequest(InSlicesOf(bytes, 7), kNoBound, request).ok();
  };
  for (const int depth : {98, 99, 100, 101, 102, 100000}) {
    const std::string groups = Nested(depth, WireTag(4, 3), WireTag(4, 4));
    EXPECT_EQ(accepts(groups), depth <= 100) << depth;
    EXPECT_EQ(accepts(WireField(4, groups)), depth <= 99) << depth;
  }
}

TEST_F(RequestCodecTest, FindsTensorDataOfEveryRequest) {
  v1::EncodeStreamRequest request;
  request.set_id(7);
  v1::EncodeRequest& encode = *request.mutable_request();
  encode.set_model("m");
  encode.mutable_hidden_states()->set_data("hidden");
  encode.mutable_token_ids()->set_data("ids");
  encode.mutable_token_type_ids()->set_data("types");
  encode.mutable_position_ids()->set_data("positions");
  encode.mutable_attention_mask()->set_data("mask");
  encode.mutable_attention_bias()->set_data("bias");

  v1::EncodeStreamRequest parsed;
  const auto payloads =
      ParseRequest(InSlicesOf(request.SerializeAsString(), 3), kNoBound, parsed).value();

  std::vector<std::string> data;
  for (const auto& [path, payload] : payloads) data.push_back(ToString(payload));
  EXPECT_THAT(data, ElementsAre("hidden", "ids", "types", "positions", "mask", "bias"));
  ASSERT_NE(FindPayload(payloads, {2, 7}), nullptr);
  EXPECT_EQ(ToString(*FindPayload(payloads, {2, 7})), "mask");
  EXPECT_EQ(FindPayload(payloads, {2, 1}), nullptr);
  EXPECT_EQ(parsed.request().model(), "m");
  EXPECT_TRUE(parsed.request().has_hidden_states());
  EXPECT_EQ(parsed.request().hidden_states().data(), "");
}

TEST_F(RequestCodecTest, KeepsWhereAPartStands) {
  v1::EncodeStreamRequest request;
  request.mutable_request()->mutable_hidden_states()->set_data("hidden");
  request.set_sequence(uint64_t{1} << 63);
  request.set_first_token(0);
  request.set_ends(true);
  v1::EncodeStreamRequest parsed;
  const auto payloads =
      ParseRequest(InSlicesOf(request.SerializeAsString(), 3), kNoBound, parsed).value();
  ASSERT_NE(FindPayload(payloads, {2, 3}), nullptr);
  EXPECT_EQ(parsed.sequence(), uint64_t{1} << 63);
  EXPECT_TRUE(parsed.has_first_token());
  EXPECT_TRUE(parsed.ends());
}

TEST_F(RequestCodecTest, FindsTheTensorsOfAMemory) {
  v1::AttendRequest request;
  request.mutable_hidden_states()->set_data("hidden");
  request.mutable_memory()->mutable_hidden_states()->set_data("memory");
  request.mutable_memory()->mutable_attention_mask()->set_data("mask");
  request.mutable_memory()->mutable_values()->set_data("values");
  request.mutable_memory()->add_lengths(3);
  v1::AttendRequest parsed;
  const auto payloads =
      ParseRequest(InSlicesOf(request.SerializeAsString(), 3), kNoBound, parsed).value();
  EXPECT_EQ(payloads.size(), 4u);
  EXPECT_EQ(ToString(*FindPayload(payloads, {4})), "hidden");
  EXPECT_EQ(ToString(*FindPayload(payloads, {11, 1})), "memory");
  EXPECT_EQ(ToString(*FindPayload(payloads, {11, 2})), "mask");
  EXPECT_EQ(ToString(*FindPayload(payloads, {11, 4})), "values");
  EXPECT_EQ(parsed.memory().hidden_states().data(), "");
  EXPECT_THAT(parsed.memory().lengths(), ElementsAre(3));
}

TEST_F(RequestCodecTest, LastDataOfMergedTensorsWins) {
  v1::Tensor first, second, third;
  first.add_shape(2);
  first.set_data("first");
  second.set_dtype(v1::FLOAT16);
  second.set_data("second");
  third.add_shape(3);
  const std::string bytes = WireField(4, first.SerializeAsString()) +
                            WireField(4, second.SerializeAsString()) +
                            WireField(4, third.SerializeAsString());
  v1::AttendRequest request;
  const auto payloads = ParseRequest(InSlicesOf(bytes, 4), kNoBound, request).value();
  ASSERT_EQ(payloads.size(), 1u);
  EXPECT_THAT(payloads.begin()->first, ElementsAre(4));
  EXPECT_EQ(ToString(payloads.begin()->second), "second");
  EXPECT_EQ(request.hidden_states().dtype(), v1::FLOAT16);
  EXPECT_THAT(request.hidden_states().shape(), ElementsAre(2, 3));
}

// Making a payload of each one would look at all slices before it, in 4 * 10^11 steps, which is
// beyond the time limit of tests.
TEST_F(RequestCodecTest, RepeatedDataTakesLinearTime) {
  std::string tensor;
  for (int i = 0; i < (1 << 21); ++i) tensor += WireField(3, "x");
  const std::string bytes = WireField(4, tensor) + WireField(4, WireField(3, "last"));
  v1::AttendRequest request;
  const auto payloads = ParseRequest(InSlicesOf(bytes, 16), kNoBound, request).value();
  ASSERT_EQ(payloads.size(), 1u);
  EXPECT_EQ(ToString(payloads.begin()->second), "last");
}

TEST_F(RequestCodecTest, EmptyDataIsAnEntryAndNoDataIsNone) {
  v1::AttendRequest request;
  auto payloads = ParseRequest(InSlicesOf(WireField(4, WireField(3, "")), 1), kNoBound, request);
  ASSERT_TRUE(payloads.ok());
  ASSERT_NE(FindPayload(*payloads, {4}), nullptr);
  EXPECT_EQ(FindPayload(*payloads, {4})->size(), 0);

  payloads = ParseRequest(InSlicesOf(WireField(4, ""), 1), kNoBound, request);
  ASSERT_TRUE(payloads.ok());
  EXPECT_EQ(FindPayload(*payloads, {4}), nullptr);
  EXPECT_TRUE(request.has_hidden_states());
}

TEST_F(RequestCodecTest, TensorsOutsideSingularFieldsAreParsedWhole) {
  v1::EncodeResponse message;
  message.add_intermediate()->mutable_tensor()->set_data("kept");
  message.mutable_pooled()->set_data("found");
  v1::EncodeResponse parsed;
  const auto payloads =
      ParseRequest(InSlicesOf(message.SerializeAsString(), 5), kNoBound, parsed).value();
  ASSERT_EQ(payloads.size(), 1u);
  EXPECT_THAT(payloads.begin()->first, ElementsAre(2));
  EXPECT_EQ(parsed.intermediate(0).tensor().data(), "kept");
}

TEST_F(RequestCodecTest, EmptyMessageIsTheDefault) {
  v1::AttendRequest request;
  request.set_model("stale");
  const auto payloads = ParseRequest(CutAt("", {}), kNoBound, request);
  ASSERT_TRUE(payloads.ok());
  EXPECT_TRUE(payloads->empty());
  EXPECT_TRUE(MessageDifferencer::Equals(request, v1::AttendRequest()));
}

TEST_F(RequestCodecTest, ThreadsParseAtTheSameTime) {
  v1::EncodeStreamRequest request;
  request.mutable_request()->mutable_token_ids()->set_data("ids");
  const std::string bytes = request.SerializeAsString();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&bytes] {
      for (int j = 0; j < 100; ++j) {
        EXPECT_EQ(FindDisagreement(v1::EncodeStreamRequest(), bytes, InSlicesOf(bytes, 2)), "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RequestCodecTest, HeadBoundCountsEverythingButTensorData) {
  v1::AttendRequest request;
  request.set_model("bert");
  const std::string model = request.SerializeAsString();
  request.mutable_hidden_states()->set_data(std::string(100000, 'x'));
  const grpc::ByteBuffer buffer = InSlicesOf(request.SerializeAsString(), 1000);
  EXPECT_TRUE(ParseRequest(buffer, 16, request).ok());

  request.set_request_id(std::string(100, 'r'));
  const auto refused = ParseRequest(InSlicesOf(request.SerializeAsString(), 1000), 64, request);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("more than 64 bytes besides the tensor data (data, raw_input_contents)"));
}

TEST_F(RequestCodecTest, ManySmallFieldsAreRefusedBeforeTheyAreParsed) {
  inference::ModelInferRequest request;
  for (int i = 0; i < kMostHeadFields; ++i) request.add_inputs();
  inference::ModelInferRequest parsed;
  EXPECT_TRUE(ParseRequest(InSlicesOf(request.SerializeAsString(), 100), kNoBound, parsed).ok());
  EXPECT_EQ(parsed.inputs_size(), kMostHeadFields);

  request.add_inputs();
  const auto refused = ParseRequest(InSlicesOf(request.SerializeAsString(), 100), kNoBound, parsed);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("more than 1024 submessages, texts and lists"));
}

TEST_F(RequestCodecTest, ManySmallTensorsAreRefusedBeforeTheyAreParsed) {
  std::string tensors;
  for (int i = 0; i <= kMostHeadFields; ++i) tensors += WireField(4, "");
  v1::AttendRequest parsed;
  const auto refused = ParseRequest(InSlicesOf(tensors, 100), kNoBound, parsed);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("more than 1024 submessages, texts and lists"));
}

struct Refusal {
  std::string name;
  std::string bytes;
  std::string message;

  friend void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }
};

class RequestRefusalTest : public RequestCodecTest,
                           public ::testing::WithParamInterface<Refusal> {};

INSTANTIATE_TEST_SUITE_P(
    Refusals, RequestRefusalTest,
    ::testing::ValuesIn(std::vector<Refusal>{
        Refusal{"FieldZero", WireTag(0, 0) + "1", "at byte 1: field number 0"},
        Refusal{"FieldZeroInTensor", WireField(4, WireTag(0, 2) + '\0'), "field number 0"},
        Refusal{"LongLength", WireTag(1, 2) + WireVarint(300),
                "a length of 300 bytes with 0 bytes left"},
        Refusal{"DataBeyondTensor", WireField(4, WireTag(3, 2) + '\2') + "ab",
                "a length of 2 bytes with 0 bytes left"},
        Refusal{"HugeLength", WireTag(4, 2) + WireVarint(uint64_t{1} << 34), "a length of"},
        Refusal{"SixByteLength", WireTag(4, 2) + WireVarint(0, 6), "a number of more than 5 bytes"},
        Refusal{"SixByteTag", WireTag(2, 0, 6) + '\0', "a number of more than 5 bytes"},
        Refusal{"ElevenByteNumber", WireTag(2, 0) + WireVarint(1, 11),
                "a number of more than 10 bytes"},
        Refusal{"CutNumber", WireTag(2, 0) + '\x80', "truncated inside a number"},
        Refusal{"CutFixed", WireTag(99, 1) + "1234567", "truncated"},
        Refusal{"EndGroup", WireTag(4, 4), "the end of a group without its start"},
        Refusal{"OpenGroup", WireTag(4, 3), "truncated inside a number"},
        Refusal{"WrongGroup", WireTag(4, 3) + WireTag(5, 4), "groups do not match"},
        Refusal{"WireType6", WireTag(4, 6), "unknown wire type"},
        Refusal{"NotUtf8", WireField(1, "\xff"), "not UTF-8"}}),
    [](const auto& test) { return test.param.name; });

TEST_P(RequestRefusalTest, NamesTheFault) {
  v1::AttendRequest request;
  const auto parsed = ParseRequest(InSlicesOf(GetParam().bytes, 2), kNoBound, request);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr("malformed attendant.v1.AttendRequest: "));
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(GetParam().message));
  EXPECT_FALSE(request.ParseFromString(GetParam().bytes));
}

TEST_F(RequestCodecTest, RefusesABufferWithoutAMessage) {
  v1::AttendRequest request;
  const auto parsed = ParseRequest(grpc::ByteBuffer(), kNoBound, request);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("no message"));
}

}  // namespace request_codec_test
}  // namespace attendant::server
