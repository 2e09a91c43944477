#include "server/wire/response_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace attendant::server {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr size_t kLongestHeader = 15;  // a tag of 5 bytes and a length of 10 bytes

}  // namespace

void MessageWriter::Add(int number, grpc::Slice bytes) {
  AddHeader(number, bytes.size());
  Embed(std::move(bytes));
}

void MessageWriter::Add(int number, MessageWriter message) {
  AddHeader(number, message.size());
  for (auto& [text, slice] : message.pieces_) {
    text_ += text;
    Embed(std::move(slice));
  }
  text_ += message.text_;
}

void MessageWriter::AddHeader(int number, size_t size) {
  using google::protobuf::io::CodedOutputStream;
  uint8_t bytes[kLongestHeader];
  uint8_t* end = CodedOutputStream::WriteTagToArray(
      WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), bytes);
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  text_.append(bytes, end);
}

void MessageWriter::Embed(grpc::Slice slice) {
  embedded_ += text_.size() + slice.size();
  pieces_.emplace_back(std::exchange(text_, {}), std::move(slice));
}

grpc::ByteBuffer MessageWriter::Finish() && {
  std::vector<grpc::Slice> slices;
  for (auto& [text, slice] : pieces_) {
    if (!text.empty()) slices.emplace_back(text);
    slices.push_back(std::move(slice));
  }
  if (!text_.empty()) slices.emplace_back(text_);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace attendant::server
