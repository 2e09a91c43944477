#include "server/inference/infer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/status_macros.h"
#include "server/inference/infer_inputs.h"
#include "server/inference/infer_parameters.h"
#include "server/inference/infer_plan.h"
#include "server/inference/infer_value.h"
#include "server/inference/inference_model.h"
#include "server/request/parse_request.h"
#include "server/tensors/status_mapping.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;

std::vector<std::string> AcceptedInputs(const InferenceModel& model) {
  if (model.input == InferenceInput::kTexts)
    return {std::begin(kTextInputs), std::end(kTextInputs)};
  std::vector<std::string> names;
  for (const TensorInterface& input : InputsOf(model)) names.push_back(input.name);
  if (model.input != InferenceInput::kTokenIds) return names;
  names.push_back("position_ids");
  // Many send them anyway: the answer says that there are none.
  const bool has_types = model.model->encoder->description().embeddings->token_types > 0;
  if (!has_types) names.push_back("token_type_ids");
  if (model.model->tokenizer->tokenizer == nullptr) return names;
  names.insert(names.end(), std::begin(kTextInputs), std::end(kTextInputs));
  return names;
}

absl::Status CheckPresent(const InferenceModel& model, const ModelInferRequest& request) {
  for (const TensorInterface& input : InputsOf(model)) {
    if (input.optional || HasInput(request, input.name) || HasInput(request, kTextInputs[0])) {
      continue;
    }
    return InvalidField(
        "inputs", absl::StrCat("an input ", input.name, " (model ", model.name, " requires it)"),
        "none");
  }
  return absl::OkStatus();
}

// An error about a request of attendant.v1, in the words of this protocol.
absl::Status Translate(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(
      absl::StrReplaceAll(status.message(), {{"token_ids", "input_ids"},
                                             {"text_pairs", "text_pair"},
                                             {"texts", "text"},
                                             {".dtype", ".datatype"},
                                             {"request_id", "id"},
                                             {"FLOAT32", "FP32"},
                                             {"FLOAT16", "FP16"},
                                             {"BFLOAT16", "BF16"}}));
}

// Adds the outputs to the head of an answer.
InferAnswer ToInferAnswer(ModelInferResponse head, const std::vector<InferOutput>& outputs,
                          Response response) {
  InferAnswer answer{std::move(head), {}};
  for (const InferOutput& output : outputs) {
    ResponseTensor& tensor = *response.Find(output.kind, output.layer);
    const v1::Tensor described = tensor.head();
    auto& told = *answer.message.add_outputs();
    told.set_name(output.name);
    told.set_datatype(DatatypeName(described.dtype()));
    *told.mutable_shape() = described.shape();
    answer.raw.push_back(tensor.TakeData());
  }
  return answer;
}

grpc::ByteBuffer Serialize(InferAnswer answer) {
  MessageWriter writer(answer.message);
  for (grpc::Slice& raw : answer.raw) {
    writer.Add(ModelInferResponse::kRawOutputContentsFieldNumber, std::move(raw));
  }
  return std::move(writer).Finish();
}

}  // namespace

absl::StatusOr<Preparation> PrepareInfer(const grpc::ByteBuffer& message,
                                         const ServiceContext& context) {
  ModelInferRequest request;
  ASSIGN_OR_RETURN(const auto payloads, ParseRequest(message, kMaxInferHeadBytes, request));
  DropNullParameters(request);
  std::vector<Payload> raw;
  for (const auto& [path, payload] : payloads) raw.push_back(payload);
  Preparation preparation;
  preparation.tokenizing_bytes = TokenizingBytes(request, raw, context);
  preparation.prepare = [request = std::move(request), raw = std::move(raw),
                         bytes = static_cast<int64_t>(message.Length()),
                         &context](const std::string& client) -> absl::StatusOr<Prepared> {
    ASSIGN_OR_RETURN(auto prepared, PrepareInferMessage(request, raw, bytes, client, context));
    prepared.compute.to_message = [to_answer = std::move(prepared.to_answer)](Response response) {
      return Serialize(to_answer(std::move(response)));
    };
    return std::move(prepared.compute);
  };
  return preparation;
}

int64_t TokenizingBytes(const ModelInferRequest& request, const std::vector<Payload>& raw,
                        const ServiceContext& context) {
  const std::string texts = AllTexts(request, raw);
  if (texts.empty()) return 0;
  const absl::StatusOr<InferenceModel> found =
      FindInferenceModel(context.models, request.model_name(), request.model_version());
  if (!found.ok() || found->model->tokenizer->tokenizer == nullptr) return 0;
  return static_cast<int64_t>(found->model->tokenizer->tokenizer->MaxEncodeBytes(texts));
}

absl::StatusOr<PreparedInfer> PrepareInferMessage(const ModelInferRequest& request,
                                                  const std::vector<Payload>& raw,
                                                  int64_t message_bytes, const std::string& client,
                                                  const ServiceContext& context) {
  ASSIGN_OR_RETURN(
      const InferenceModel model,
      FindInferenceModel(context.models, request.model_name(), request.model_version()));
  ASSIGN_OR_RETURN(InferPlan plan, PlanInfer(request, model));
  const bool by_token =
      std::any_of(plan.outputs.begin(), plan.outputs.end(),
                  [](const InferOutput& output) { return output.kind != OutputKind::kPooled; });
  if (HasInput(request, kTextInputs[0])) plan.encode.set_pad_texts(by_token);
  PayloadsByPath payloads;
  google::protobuf::Message& call =
      plan.attend ? static_cast<google::protobuf::Message&>(*plan.attend) : plan.encode;
  RETURN_IF_ERROR(PlaceInputs(request, raw, AcceptedInputs(model), call, payloads));
  RETURN_IF_ERROR(CheckPresent(model, request));
  if (raw.empty()) {
    for (const auto& [path, copied] : payloads) message_bytes += copied.size();
  }
  const auto parse = [&](auto& parsed, const auto&... of_client) {
    parsed.set_model(model.model->name);
    parsed.set_request_id(request.id());
    return ParseRequest(parsed, RequestPayloads(payloads, {}), context, of_client...);
  };
  absl::StatusOr<PreparedCompute> prepared = PrepareRequest(
      plan.attend ? parse(*plan.attend) : parse(plan.encode, client), message_bytes, context);
  if (!prepared.ok()) return Translate(prepared.status());
  const ServedModel& served = *prepared->request.span.model;
  if (!request.model_version().empty() && VersionText(served) != request.model_version()) {
    return NotFound("model_version",
                    absl::StrCat("version ", request.model_version(), " of model ", served.name,
                                 " has just been replaced"),
                    "send the request again");
  }
  prepared->timeout = plan.timeout;
  ModelInferResponse head;
  head.set_model_name(request.model_name());
  head.set_model_version(VersionText(served));
  head.set_id(request.id());
  return PreparedInfer{*std::move(prepared), [head, outputs = plan.outputs](Response response) {
                         return ToInferAnswer(head, outputs, std::move(response));
                       }};
}

}  // namespace attendant::server
