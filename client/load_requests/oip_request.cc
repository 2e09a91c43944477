#include "client/load_requests/oip_request.h"

#include <algorithm>
#include <utility>

#include "inference/inference_service.pb.h"

namespace attendant::client {
namespace {

constexpr char kModelInfer[] = "/inference.GRPCInferenceService/ModelInfer";

const char* OipName(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return "FP32";
    case DataType::kFloat16:
      return "FP16";
    case DataType::kBFloat16:
      return "BF16";
    default:
      return "INT64";
  }
}

void AddInput(const std::string& name, Tensor tensor, inference::ModelInferRequest& message) {
  inference::ModelInferRequest::InferInputTensor& input = *message.add_inputs();
  input.set_name(name);
  input.set_datatype(OipName(tensor.dtype));
  input.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  message.add_raw_input_contents(std::move(tensor.data));
}

}  // namespace

PreparedRequest MakeOipRequest(OipRequest request) {
  inference::ModelInferRequest message;
  message.set_model_name(request.model);
  const std::vector<int64_t> rows = {request.rows.shape[0], request.rows.shape[1]};
  AddInput(request.input, std::move(request.rows), message);
  if (std::any_of(request.lengths.begin(), request.lengths.end(),
                  [&](int64_t length) { return length < rows[1]; })) {
    std::vector<int64_t> mask;
    for (const int64_t length : request.lengths) {
      mask.insert(mask.end(), static_cast<size_t>(length), 1);
      mask.insert(mask.end(), static_cast<size_t>(rows[1] - length), 0);
    }
    AddInput("attention_mask", Int64Tensor(rows, mask), message);
  }
  message.add_outputs()->set_name(request.output);
  return PreparedRequest::Raw(kModelInfer, message.SerializeAsString());
}

}  // namespace attendant::client
