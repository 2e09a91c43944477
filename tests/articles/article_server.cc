#include "tests/articles/article_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/checkpoint/checkpoint.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace {

constexpr char kModel[] = "article";

// Writes the files of a module, which are not needed once its model has been loaded.
void WriteModule(const nlohmann::json& description, const std::vector<TestTensor>& tensors,
                 const TempFolder& folder) {
  folder.Write("attendant.json", description.dump());
  if (!tensors.empty()) folder.Write("weights.safetensors", MakeSafetensors(tensors));
}

std::unique_ptr<server::TestServer> Serve(const std::string& source,
                                          const CheckpointOptions& options = {}) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(source, options);
  if (!checkpoint.ok()) {
    ADD_FAILURE() << checkpoint.status();
    return nullptr;
  }
  auto encoder =
      Encoder::Load(checkpoint->description, *checkpoint->weights, [](int64_t, int64_t) {});
  if (!encoder.ok()) {
    ADD_FAILURE() << encoder.status();
    return nullptr;
  }
  server::TestServerOptions served;
  served.models[kModel] = std::make_shared<server::ServedModel>(kModel, *encoder);
  return std::make_unique<server::TestServer>(std::move(served));
}

}  // namespace

TestTensor WithValues(const std::string& name, std::vector<int64_t> shape,
                      const std::vector<float>& values) {
  return {name, std::move(shape), "F32", Encode(values, "F32")};
}

TestTensor Generated(const std::string& name, std::vector<int64_t> shape, int64_t seed) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return WithValues(name, std::move(shape), test_support::Generate(count, seed));
}

v1::AttendRequest RequestOf(std::vector<int64_t> shape, const std::vector<float>& values,
                            v1::AttendStage stage) {
  v1::AttendRequest request;
  *request.mutable_hidden_states() = FloatTensor(std::move(shape), values);
  request.set_stage(stage);
  return request;
}

v1::Memory MemoryOf(std::vector<int64_t> shape, const std::vector<float>& values) {
  v1::Memory memory;
  *memory.mutable_hidden_states() = FloatTensor(std::move(shape), values);
  return memory;
}

ArticleServer::ArticleServer(const std::string& source) : server_(Serve(source)) {}

ArticleServer::ArticleServer(const nlohmann::json& description,
                             const std::vector<TestTensor>& tensors, const nlohmann::json& prune) {
  const TempFolder folder;
  WriteModule(description, tensors, folder);
  folder.Write("prune.json", prune.dump());
  CheckpointOptions options;
  if (!prune.empty()) options.prune_file = folder.File("prune.json");
  server_ = Serve(folder.path(), options);
}

v1::AttendResponse ArticleServer::Attend(const v1::AttendRequest& request) {
  v1::AttendResponse response;
  const grpc::Status status = server_->Attend(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

std::vector<float> ArticleServer::Output(const v1::AttendRequest& request) {
  return ToFloats(Attend(request).output());
}

std::vector<float> ArticleServer::Encoded(const v1::EncodeRequest& request) {
  v1::EncodeResponse response;
  const grpc::Status status = server_->Encode(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return ToFloats(response.hidden_states());
}

std::vector<float> ArticleServer::Probabilities(v1::AttendRequest request) {
  request.set_return_attention_probabilities(true);
  return ToFloats(Attend(request).attention_probabilities());
}

v1::EncodeResponse ArticleServer::Encode(const v1::EncodeRequest& request) {
  v1::EncodeResponse response;
  const grpc::Status status = server_->Encode(request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

std::vector<float> ArticleServer::EncodedInParts(const std::vector<float>& hidden_states,
                                                 int64_t width, int64_t tokens) {
  grpc::ClientContext context;
  const auto stream = server_->stub().EncodeStream(&context);
  const auto length = static_cast<int64_t>(hidden_states.size()) / width;
  std::vector<float> encoded;
  for (int64_t first = 0; first < length; first += tokens) {
    const int64_t count = std::min(tokens, length - first);
    v1::EncodeStreamRequest part;
    part.set_sequence(1);
    *part.mutable_request()->mutable_hidden_states() =
        FloatTensor({1, count, width}, server::Rows(hidden_states, width, first, count));
    EXPECT_TRUE(stream->Write(part));
    v1::EncodeStreamResponse answer;
    EXPECT_TRUE(stream->Read(&answer));
    EXPECT_FALSE(answer.has_error()) << answer.error().message();
    const std::vector<float> rows = ToFloats(answer.response().hidden_states());
    encoded.insert(encoded.end(), rows.begin(), rows.end());
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  return encoded;
}

std::string ArticleServer::PutMemory(const v1::Memory& memory) {
  grpc::ClientContext context;
  v1::PutMemoryRequest request;
  *request.mutable_memory() = memory;
  v1::PutMemoryResponse response;
  const grpc::Status status = server_->stub().PutMemory(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.handle();
}

grpc::Status ArticleServer::TryAttend(const v1::AttendRequest& request) {
  v1::AttendResponse response;
  return server_->Attend(request, &response);
}

grpc::Status ArticleServer::TryEncode(const v1::EncodeRequest& request) {
  v1::EncodeResponse response;
  return server_->Encode(request, &response);
}

v1::GetModelResponse ArticleServer::Model() {
  grpc::ClientContext context;
  v1::GetModelResponse response;
  const grpc::Status status = server_->stub().GetModel(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

std::string Refusal(const nlohmann::json& description, const std::vector<TestTensor>& tensors) {
  const TempFolder folder;
  WriteModule(description, tensors, folder);
  return std::string(OpenCheckpoint(folder.path(), {}).status().message());
}

std::vector<float> Multiply(const std::vector<float>& x, const std::vector<float>& weight,
                            int64_t in) {
  std::vector<float> y;
  for (size_t row = 0; row < x.size(); row += in) {
    for (size_t at = 0; at < weight.size(); at += in) {
      double sum = 0;
      for (int64_t i = 0; i < in; ++i) sum += static_cast<double>(x[row + i]) * weight[at + i];
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

void ExpectRow(const std::vector<float>& answer, int64_t row, const std::vector<double>& expected) {
  ASSERT_GE(answer.size(), (row + 1) * expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(answer[row * expected.size() + i], expected[i], kTolerance)
        << "row " << row << ", column " << i;
  }
}

void ExpectSums(const std::vector<float>& answer, double sum, double sum_of_squares) {
  double total = 0, squares = 0;
  for (const double element : answer) {
    total += element;
    squares += element * element;
  }
  EXPECT_NEAR(total, sum, 1e-5);
  EXPECT_NEAR(squares, sum_of_squares, 2e-4);
}

}  // namespace attendant::articles
