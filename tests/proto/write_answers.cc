// Program that writes one answer of each method with payloads, as the server's codec builds it, for
// a generated stub to read: write_answers FOLDER.
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "attendant/v1/encoder_service.pb.h"
#include "server/wire/response_codec.h"

namespace {

using attendant::server::MessageWriter;
using attendant::v1::Tensor;

// Adds a float32 tensor [2, 3] of first, first + 1, ….
void AddTensor(int number, float first, MessageWriter& message) {
  Tensor head;
  head.set_dtype(attendant::v1::FLOAT32);
  head.add_shape(2);
  head.add_shape(3);
  std::vector<float> values;
  for (int i = 0; i < 6; ++i) values.push_back(first + static_cast<float>(i));
  MessageWriter tensor(head);
  tensor.Add(Tensor::kDataFieldNumber, grpc::Slice(values.data(), values.size() * sizeof(float)));
  message.Add(number, std::move(tensor));
}

bool Write(const std::string& path, MessageWriter answer) {
  const grpc::ByteBuffer buffer = std::move(answer).Finish();
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::ofstream file(path, std::ios::binary);
  for (const grpc::Slice& slice : slices) {
    file.write(reinterpret_cast<const char*>(slice.begin()),
               static_cast<std::streamsize>(slice.size()));
  }
  return file.flush().good();
}

bool WriteAttend(const std::string& folder) {
  attendant::v1::AttendResponse head;
  head.mutable_execution()->set_tokens(2);
  MessageWriter answer(head);
  AddTensor(1, 0, answer);
  AddTensor(2, 10, answer);
  return Write(folder + "/attend.bin", std::move(answer));
}

bool WriteEncodeStream(const std::string& folder) {
  attendant::v1::EncodeResponse head;
  head.mutable_execution()->set_batch_requests(3);
  MessageWriter encoded(head);
  AddTensor(1, 20, encoded);
  for (int i = 0; i < 3; ++i) {
    attendant::v1::LayerTensor layer;
    layer.set_layer(static_cast<uint32_t>(i));
    MessageWriter element(layer);
    AddTensor(2, 100 * static_cast<float>(i), element);
    encoded.Add(3, std::move(element));
  }
  attendant::v1::EncodeStreamResponse item;
  item.set_id(7);
  MessageWriter answer(item);
  answer.Add(2, std::move(encoded));
  return Write(folder + "/encode_stream.bin", std::move(answer));
}

bool WriteEncode(const std::string& folder) {
  MessageWriter answer{attendant::v1::EncodeResponse()};
  AddTensor(2, 30, answer);
  return Write(folder + "/encode.bin", std::move(answer));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_answers FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  return WriteAttend(folder) && WriteEncode(folder) && WriteEncodeStream(folder) ? 0 : 1;
}
