#include "client/execution_reader.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <string>
#include <utility>
#include <vector>

#include "client/proto_conversion.h"

namespace attendant::client {
namespace {

using google::protobuf::internal::WireFormatLite;

using google::protobuf::io::CodedInputStream;

// Reads a length and lets `read` consume exactly that many bytes.
template <typename ReadValue>
bool ReadSubmessage(CodedInputStream& input, ReadValue read) {
  uint32_t size = 0;
  if (!input.ReadVarint32(&size)) return false;
  const auto limit = input.PushLimit(static_cast<int>(size));
  if (!read() || input.BytesUntilLimit() != 0) return false;
  input.PopLimit(limit);
  return true;
}

uint32_t SubmessageTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

bool Read(CodedInputStream& input, int field, v1::Execution& execution) {
  while (const uint32_t tag = input.ReadTag()) {
    const bool read =
        tag == SubmessageTag(field)
            ? ReadSubmessage(input, [&] { return execution.MergeFromCodedStream(&input); })
            : WireFormatLite::SkipField(&input, tag);
    if (!read) return false;
  }
  return input.ConsumedEntireMessage();
}

// Reads everything but the tensors of the answer.
bool Read(CodedInputStream& input, v1::EncodeStreamResponse& item) {
  constexpr uint32_t kIdTag = WireFormatLite::MakeTag(v1::EncodeStreamResponse::kIdFieldNumber,
                                                      WireFormatLite::WIRETYPE_VARINT);
  while (const uint32_t tag = input.ReadTag()) {
    bool read;
    if (tag == kIdTag) {
      uint64_t id = 0;
      read = input.ReadVarint64(&id);
      item.set_id(id);
    } else if (tag == SubmessageTag(v1::EncodeStreamResponse::kResponseFieldNumber)) {
      read = ReadSubmessage(input, [&] {
        return Read(input, v1::EncodeResponse::kExecutionFieldNumber,
                    *item.mutable_response()->mutable_execution());
      });
    } else if (tag == SubmessageTag(v1::EncodeStreamResponse::kErrorFieldNumber)) {
      read =
          ReadSubmessage(input, [&] { return item.mutable_error()->MergeFromCodedStream(&input); });
    } else {
      read = WireFormatLite::SkipField(&input, tag);
    }
    if (!read) return false;
  }
  return input.ConsumedEntireMessage();
}

absl::Status NoMessage() {
  return absl::InternalError("the server's response is not a valid message");
}

}  // namespace

absl::StatusOr<Execution> ReadExecution(grpc::ByteBuffer& answer, int field) {
  if (field == 0) return Execution();
  v1::Execution execution;
  grpc::ProtoBufferReader reader(&answer);
  CodedInputStream input(&reader);
  if (!reader.status().ok() || !Read(input, field, execution)) return NoMessage();
  return FromProto(execution);
}

absl::StatusOr<RawAnswer> ReadRawAnswer(grpc::ByteBuffer& answer, int field) {
  RawAnswer raw;
  std::vector<grpc::Slice> slices;
  if (!answer.Dump(&slices).ok()) return NoMessage();
  std::string bytes;
  bytes.reserve(answer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  if (field == 0) {
    raw.content = std::move(bytes);
    return raw;
  }
  v1::Execution execution;
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                         static_cast<int>(bytes.size()));
  const auto position = [&] { return static_cast<size_t>(input.CurrentPosition()); };
  for (size_t begin = 0; const uint32_t tag = input.ReadTag(); begin = position()) {
    const bool is_execution = tag == SubmessageTag(field);
    const bool read =
        is_execution ? ReadSubmessage(input, [&] { return execution.MergeFromCodedStream(&input); })
                     : WireFormatLite::SkipField(&input, tag);
    if (!read) return NoMessage();
    if (!is_execution) raw.content.append(bytes, begin, position() - begin);
  }
  if (!input.ConsumedEntireMessage()) return NoMessage();
  raw.execution = FromProto(execution);
  return raw;
}

absl::StatusOr<StreamAnswer> ReadStreamAnswer(grpc::ByteBuffer& answer) {
  v1::EncodeStreamResponse item;
  grpc::ProtoBufferReader reader(&answer);
  CodedInputStream input(&reader);
  if (!reader.status().ok() || !Read(input, item)) return NoMessage();
  if (item.has_error()) return StreamAnswer{item.id(), FromProto(item.error())};
  return StreamAnswer{item.id(), FromProto(item.response().execution())};
}

}  // namespace attendant::client
