// ArticleServer, which serves the module that an article builds from a folder as a user would write
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attendant/v1/encoder_service.pb.h"
#include "nlohmann/json.hpp"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::articles {

using server::FloatTensor;
using server::IntegerTensor;
using server::ToFloats;

inline constexpr double kTolerance = 2e-6;

// Returns a tensor of Generate's values; see tests/support/test_vectors.h.
TestTensor Generated(const std::string& name, std::vector<int64_t> shape, int64_t seed);
TestTensor WithValues(const std::string& name, std::vector<int64_t> shape,
                      const std::vector<float>& values);

// Returns a request with hidden states [B, S, E] of these values.
v1::AttendRequest RequestOf(std::vector<int64_t> shape, const std::vector<float>& values,
                            v1::AttendStage stage = v1::CONTEXT);

// Returns a memory of rows [B, M, K].
v1::Memory MemoryOf(std::vector<int64_t> shape, const std::vector<float>& values);

// A server of one model. Calls other than Try… fail the test on an error.
class ArticleServer {
 public:
  // `source` is as in the flag --model, such as "worked-example".
  explicit ArticleServer(const std::string& source);
  // Serves a folder of attendant.json and weights.safetensors, without the heads that `prune`
  // names.
  ArticleServer(const nlohmann::json& description, const std::vector<TestTensor>& tensors,
                const nlohmann::json& prune = nlohmann::json::object());

  // These return the answer, or its tensor as floats.
  v1::AttendResponse Attend(const v1::AttendRequest& request);
  std::vector<float> Output(const v1::AttendRequest& request);
  std::vector<float> Encoded(const v1::EncodeRequest& request);
  // Returns probabilities [B, H, S, S].
  std::vector<float> Probabilities(v1::AttendRequest request);

  v1::EncodeResponse Encode(const v1::EncodeRequest& request);
  // Sends hidden states [S, E] of one sequence over an EncodeStream, in parts of `tokens` tokens,
  // and returns the answers as one.
  std::vector<float> EncodedInParts(const std::vector<float>& hidden_states, int64_t width,
                                    int64_t tokens);
  // Registers a memory and returns its handle.
  std::string PutMemory(const v1::Memory& memory);

  grpc::Status TryAttend(const v1::AttendRequest& request);
  grpc::Status TryEncode(const v1::EncodeRequest& request);
  v1::GetModelResponse Model();

 private:
  std::unique_ptr<server::TestServer> server_;
};

// Returns the reason why attendant.json with these tensors is not served.
std::string Refusal(const nlohmann::json& description, const std::vector<TestTensor>& tensors);

// Returns x [rows, in] times the transpose of W [out, in].
std::vector<float> Multiply(const std::vector<float>& x, const std::vector<float>& weight,
                            int64_t in);

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

void ExpectRow(const std::vector<float>& answer, int64_t row, const std::vector<double>& expected);

// Expects these sums of all elements and of their squares.
void ExpectSums(const std::vector<float>& answer, double sum, double sum_of_squares);

}  // namespace attendant::articles
