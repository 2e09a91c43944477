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

using attendant::server::ResponsePayload;
using attendant::server::SerializeResponse;
using attendant::v1::Tensor;

// Returns a float32 tensor [2, 3] of first, first + 1, …; its data goes into `payloads`.
void Describe(float first, const std::vector<int>& path, Tensor& tensor,
              std::vector<ResponsePayload>& payloads) {
  tensor.set_dtype(attendant::v1::FLOAT32);
  tensor.add_shape(2);
  tensor.add_shape(3);
  std::vector<float> values;
  for (int i = 0; i < 6; ++i) values.push_back(first + static_cast<float>(i));
  payloads.push_back({path, grpc::Slice(values.data(), values.size() * sizeof(float))});
}

bool Write(const std::string& path, const google::protobuf::Message& answer,
           std::vector<ResponsePayload> payloads) {
  const grpc::ByteBuffer buffer = SerializeResponse(answer, std::move(payloads));
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
  attendant::v1::AttendResponse answer;
  std::vector<ResponsePayload> payloads;
  Describe(0, {1}, *answer.mutable_output(), payloads);
  Describe(10, {2}, *answer.mutable_attention_probabilities(), payloads);
  answer.mutable_execution()->set_tokens(2);
  return Write(folder + "/attend.bin", answer, std::move(payloads));
}

bool WriteEncodeStream(const std::string& folder) {
  attendant::v1::EncodeStreamResponse answer;
  answer.set_id(7);
  attendant::v1::EncodeResponse& encoded = *answer.mutable_response();
  std::vector<ResponsePayload> payloads;
  Describe(20, {2, 1}, *encoded.mutable_hidden_states(), payloads);
  for (int i = 0; i < 3; ++i) {
    attendant::v1::LayerTensor& layer = *encoded.add_intermediate();
    layer.set_layer(static_cast<uint32_t>(i));
    Describe(100 * static_cast<float>(i), {2, 3, i, 2}, *layer.mutable_tensor(), payloads);
  }
  encoded.mutable_execution()->set_batch_requests(3);
  return Write(folder + "/encode_stream.bin", answer, std::move(payloads));
}

bool WriteEncode(const std::string& folder) {
  attendant::v1::EncodeResponse answer;
  std::vector<ResponsePayload> payloads;
  Describe(30, {2}, *answer.mutable_pooled(), payloads);
  return Write(folder + "/encode.bin", answer, std::move(payloads));
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
