#include "server/wire/response_codec.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cassert>
#include <map>
#include <memory>
#include <utility>

#include "attendant/v1/tensor.pb.h"

namespace attendant::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::internal::WireFormatLite;

constexpr size_t kLongestHeader = 15;  // a tag of 5 bytes and a length of 10 bytes

// A message under construction in wire format: owned text with payloads embedded by reference.
class Rope {
 public:
  size_t size() const { return embedded_ + text_.size(); }

  void Append(const Message& message) { message.AppendPartialToString(&text_); }

  // Appends the length-delimited field `number` with `content`.
  void AppendField(int number, grpc::Slice content) {
    AppendHeader(number, content.size());
    Embed(std::move(content));
  }
  void AppendField(int number, Rope content) {
    AppendHeader(number, content.size());
    for (Piece& piece : content.pieces_) {
      text_ += piece.text;
      Embed(std::move(piece.payload));
    }
    text_ += content.text_;
  }

  grpc::ByteBuffer ToByteBuffer() && {
    std::vector<grpc::Slice> slices;
    for (Piece& piece : pieces_) {
      if (!piece.text.empty()) slices.emplace_back(piece.text);
      slices.push_back(std::move(piece.payload));
    }
    if (!text_.empty()) slices.emplace_back(text_);
    return grpc::ByteBuffer(slices.data(), slices.size());
  }

 private:
  struct Piece {
    std::string text;
    grpc::Slice payload;  // follows the text
  };

  void AppendHeader(int number, size_t size) {
    using google::protobuf::io::CodedOutputStream;
    uint8_t bytes[kLongestHeader];
    uint8_t* end = CodedOutputStream::WriteTagToArray(
        WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), bytes);
    end = CodedOutputStream::WriteVarint64ToArray(size, end);
    text_.append(bytes, end);
  }

  void Embed(grpc::Slice payload) {
    embedded_ += text_.size() + payload.size();
    pieces_.push_back({std::exchange(text_, {}), std::move(payload)});
  }

  std::vector<Piece> pieces_;
  std::string text_;     // follows the last piece
  size_t embedded_ = 0;  // bytes of all pieces
};

// A payload of a message, with the rest of its path, which starts at that message.
struct Entry {
  const int* path;
  const int* path_end;
  grpc::Slice* data;
};
using Entries = std::vector<Entry>;

Rope Serialize(const Message& message, const Entries& payloads);

// Groups the payloads by the first number of their paths and removes that number from each path.
std::map<int, Entries> Step(const Entries& payloads) {
  std::map<int, Entries> groups;
  for (const Entry& entry : payloads) {
    assert(entry.path < entry.path_end);
    groups[*entry.path].push_back({entry.path + 1, entry.path_end, entry.data});
  }
  return groups;
}

// Appends every element of a repeated field, complete and in order. An element that is written in
// two parts would be read as two elements.
void AppendElements(const Message& message, const FieldDescriptor* field, const Entries& payloads,
                    Rope& rope) {
  const Reflection& reflection = *message.GetReflection();
  std::map<int, Entries> by_index = Step(payloads);
  assert(by_index.rbegin()->first < reflection.FieldSize(message, field));
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    rope.AppendField(field->number(),
                     Serialize(reflection.GetRepeatedMessage(message, field, i), by_index[i]));
  }
}

Rope Serialize(const Message& message, const Entries& payloads) {
  Rope rope;
  if (payloads.empty() || message.GetDescriptor() == v1::Tensor::descriptor()) {
    rope.Append(message);
    for (const Entry& entry : payloads) {
      if (entry.data->size() == 0) continue;  // protobuf omits an empty bytes field, too
      rope.AppendField(v1::Tensor::kDataFieldNumber, std::move(*entry.data));
    }
    return rope;
  }
  // The fields with payloads are written after all others, which are small and cheap to copy.
  const std::map<int, Entries> by_field = Step(payloads);
  const Reflection& reflection = *message.GetReflection();
  const std::unique_ptr<Message> others(message.New());
  others->CopyFrom(message);
  for (const auto& [number, inside] : by_field) {
    reflection.ClearField(others.get(), message.GetDescriptor()->FindFieldByNumber(number));
  }
  rope.Append(*others);
  for (const auto& [number, inside] : by_field) {
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByNumber(number);
    if (field->is_repeated() && field->type() == FieldDescriptor::TYPE_BYTES) {
      for (const auto& [index, element] : Step(inside)) {
        rope.AppendField(number, std::move(*element.front().data));
      }
    } else if (field->is_repeated()) {
      AppendElements(message, field, inside, rope);
    } else if (field->type() == FieldDescriptor::TYPE_BYTES) {
      rope.AppendField(number, std::move(*inside.front().data));
    } else {
      rope.AppendField(number, Serialize(reflection.GetMessage(message, field), inside));
    }
  }
  return rope;
}

}  // namespace

grpc::ByteBuffer SerializeResponse(const Message& response, std::vector<ResponsePayload> payloads) {
  Entries entries;
  entries.reserve(payloads.size());
  for (ResponsePayload& payload : payloads) {
    const int* path = payload.path.data();
    entries.push_back({path, path + payload.path.size(), &payload.data});
  }
  return Serialize(response, entries).ToByteBuffer();
}

}  // namespace attendant::server
