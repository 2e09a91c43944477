// Requests of the Open Inference Protocol for tests.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "inference/inference_service.grpc.pb.h"
#include "tests/server/support/test_server.h"

namespace attendant::server {

using InferStub = inference::GRPCInferenceService::Stub;
using InferRequest = inference::ModelInferRequest;
using InferResponse = inference::ModelInferResponse;

template <typename Element>
std::string RawOf(const std::vector<Element>& elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()),
                     elements.size() * sizeof(Element));
}

// Adds an input with raw contents.
template <typename Element>
void AddRaw(InferRequest& request, const std::string& name, const std::string& datatype,
            const std::vector<int64_t>& shape, const std::vector<Element>& elements) {
  auto& input = *request.add_inputs();
  input.set_name(name);
  input.set_datatype(datatype);
  input.mutable_shape()->Add(shape.begin(), shape.end());
  request.add_raw_input_contents(RawOf(elements));
}

// The elements of an output of floats.
inline std::vector<float> FloatsOf(const InferResponse& response, int output) {
  const std::string& raw = response.raw_output_contents(output);
  std::vector<float> floats(raw.size() / sizeof(float));
  std::memcpy(floats.data(), raw.data(), floats.size() * sizeof(float));
  return floats;
}

inline std::vector<int64_t> ShapeOfOutput(const InferResponse& response, int output) {
  const auto& shape = response.outputs(output).shape();
  return {shape.begin(), shape.end()};
}

// Two sequences of token ids for "tiny" or "counting"; the second has two tokens.
inline const std::vector<int64_t>& SomeIds() {
  static const auto& ids = *new std::vector<int64_t>{11, 48, 85, 22, 59, 7, 33, 0};
  return ids;
}
inline const std::vector<int64_t>& SomeMask() {
  static const auto& mask = *new std::vector<int64_t>{1, 1, 1, 1, 1, 1, 0, 0};
  return mask;
}

inline InferRequest IdsRequest(const std::string& model) {
  InferRequest request;
  request.set_model_name(model);
  request.set_id("some id");
  AddRaw(request, "input_ids", "INT64", {2, 4}, SomeIds());
  AddRaw(request, "attention_mask", "INT64", {2, 4}, SomeMask());
  return request;
}

inline void Ask(InferRequest& request, const std::vector<std::string>& outputs) {
  for (const std::string& name : outputs) request.add_outputs()->set_name(name);
}

inline grpc::Status Infer(TestServer& server, const InferRequest& request,
                          InferResponse* response) {
  grpc::ClientContext context;
  return inference::GRPCInferenceService::NewStub(server.channel())
      ->ModelInfer(&context, request, response);
}

}  // namespace attendant::server
