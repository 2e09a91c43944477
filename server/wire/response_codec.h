// Serializer of responses with tensor data that the engine has written into the slices that gRPC
// sends.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <utility>
#include <vector>

namespace attendant::server {

// A message under construction in wire format: text, and slices that are not copied. Every
// generated protobuf parser can read the result. Move-only.
class MessageWriter {
 public:
  // Begins with the fields of `message`, none of which may be added later. The elements of a
  // repeated field must either all be in `message` or all be added.
  explicit MessageWriter(const google::protobuf::Message& message) {
    message.AppendPartialToString(&text_);
  }
  MessageWriter(MessageWriter&&) = default;
  MessageWriter& operator=(MessageWriter&&) = default;

  // Add a field, or an element of a repeated field: bytes, which the slice owns, or a message.
  void Add(int number, grpc::Slice bytes);
  void Add(int number, MessageWriter message);

  grpc::ByteBuffer Finish() &&;

 private:
  size_t size() const { return embedded_ + text_.size(); }
  void AddHeader(int number, size_t size);
  void Embed(grpc::Slice slice);

  std::vector<std::pair<std::string, grpc::Slice>> pieces_;  // each slice follows its text
  std::string text_;                                         // follows the last slice
  size_t embedded_ = 0;                                      // bytes of all pieces
};

inline grpc::ByteBuffer SerializeResponse(const google::protobuf::Message& response) {
  return MessageWriter(response).Finish();
}

}  // namespace attendant::server
