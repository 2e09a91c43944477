// Calls a running attendant-server: example [HOST:PORT]
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace v1 = attendant::v1;
using namespace std::chrono_literals;

// Takes float as FLOAT32 and int64_t as INT64. The wire is little-endian, as nearly all machines
// are.
template <typename T>
v1::Tensor MakeTensor(const std::vector<int64_t>& shape, const std::vector<T>& values) {
  v1::Tensor tensor;
  tensor.set_dtype(std::is_same_v<T, float> ? v1::FLOAT32 : v1::INT64);
  tensor.mutable_shape()->Assign(shape.begin(), shape.end());
  tensor.set_data(values.data(), values.size() * sizeof(T));
  return tensor;
}

// Prints the first three values of a row of a FLOAT32 tensor [..., width].
void PrintRow(const std::string& label, const v1::Tensor& tensor, int64_t row) {
  float values[3];
  const int64_t width = tensor.shape(tensor.shape_size() - 1);
  std::memcpy(values, tensor.data().data() + row * width * sizeof(float), sizeof(values));
  std::printf("  %s: %.4f %.4f %.4f\n", label.c_str(), values[0], values[1], values[2]);
}

// The field that an error names: its details do, or else the beginning of its message.
std::string FieldOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::BadRequest bad_request;
  details.ParseFromString(status.error_details());
  for (const auto& detail : details.details()) {
    if (detail.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
      return bad_request.field_violations(0).field();
    }
  }
  return status.error_message().substr(0, status.error_message().find(':'));
}

// A context serves one call.
std::unique_ptr<grpc::ClientContext> Within(std::chrono::milliseconds timeout) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + timeout);
  return context;
}

void ExitUnlessOk(const grpc::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.error_message().c_str());
  std::exit(1);
}

// Past the proxy of the environment, if there is one.
std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

int main(int argc, char** argv) {
  v1::EncoderService::Stub stub(Connect(argc > 1 ? argv[1] : "localhost:8001"));

  // One sequence of three tokens. The mask keeps two; the third row is returned as zeros.
  v1::AttendRequest attend;
  attend.set_model("worked-example");
  *attend.mutable_hidden_states() =
      MakeTensor<float>({1, 3, 4}, {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1});
  *attend.mutable_attention_mask() = MakeTensor<int64_t>({1, 3}, {1, 1, 0});
  v1::AttendResponse attended;
  ExitUnlessOk(stub.Attend(Within(5s).get(), attend, &attended));
  std::puts("Attend");
  for (int row = 0; row < 3; ++row) {
    PrintRow("row " + std::to_string(row), attended.output(), row);
  }

  // Three sequences of unequal lengths, one after the other, without padding.
  v1::EncodeRequest packed;
  packed.set_model("tiny");
  *packed.mutable_token_ids() = MakeTensor<int64_t>({7}, {1, 2, 3, 4, 5, 6, 7});
  for (const int64_t length : {4, 1, 2}) packed.add_lengths(length);
  v1::EncodeResponse encoded;
  ExitUnlessOk(stub.Encode(Within(5s).get(), packed, &encoded));
  std::puts("Encode");
  int64_t first = 0;
  for (const int64_t length : packed.lengths()) {
    PrintRow("row " + std::to_string(first) + " begins a sequence of " + std::to_string(length),
             encoded.hidden_states(), first);
    first += length;
  }

  // Texts, which the server tokenizes: a vector of each.
  v1::EncodeRequest texts;
  texts.set_model("minilm");
  for (const char* text : {"hello world", "good morning"}) texts.add_texts(text);
  texts.set_return_pooled(true);
  texts.set_omit_hidden_states(true);
  v1::EncodeResponse embedded;
  ExitUnlessOk(stub.Encode(Within(5s).get(), texts, &embedded));
  std::puts("Texts");
  for (int row = 0; row < texts.texts_size(); ++row) {
    PrintRow(texts.texts(row) + ", " + std::to_string(embedded.lengths(row)) + " tokens",
             embedded.pooled(), row);
  }

  // The model has one layer, and this is not it.
  attend.set_layer(7);
  grpc::Status status = stub.Attend(Within(5s).get(), attend, &attended);
  std::printf("Error\n  code %d, field %s\n  %s\n", status.error_code(), FieldOf(status).c_str(),
              status.error_message().c_str());

  // A millisecond is too short for 8192 tokens.
  v1::AttendRequest many;
  many.set_model("worked-example");
  *many.mutable_hidden_states() = MakeTensor({1, 8192, 4}, std::vector<float>(32768));
  status = stub.Attend(Within(1ms).get(), many, &attended);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) std::puts("Deadline\n  exceeded");
}
