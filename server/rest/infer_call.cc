#include "server/rest/infer_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/rest/infer_body.h"
#include "server/rest/infer_content.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Outputs in JSON are FP32: the other float types have no form there.
absl::Status CheckOutputForms(const inference::ModelInferRequest& message,
                              const std::vector<bool>& binary, bool binary_by_default) {
  const auto found = message.parameters().find("output_datatype");
  if (found == message.parameters().end()) return absl::OkStatus();
  const std::string& type = found->second.string_param();
  if (type != "FP16" && type != "BF16") return absl::OkStatus();
  const bool all = binary.empty()
                       ? binary_by_default
                       : std::all_of(binary.begin(), binary.end(), [](bool one) { return one; });
  if (all) return absl::OkStatus();
  return InvalidField("parameters.output_datatype", "FP32 (outputs in JSON)",
                      absl::StrCat(type, "; request binary_data"));
}

}  // namespace

absl::Status InferCall::OnMessage(MessageSlices body) {
  absl::StatusOr<PreparedInfer> prepared = ReadMessage(std::move(body));
  return prepared.ok() ? Submit(*std::move(prepared)) : prepared.status();
}

absl::StatusOr<PreparedInfer> InferCall::ReadMessage(MessageSlices slices) {
  auto body = std::make_shared<const MessageSlices>(std::move(slices));
  const int64_t bytes = ByteSize(*body);
  const int64_t json_bytes = json_bytes_.value_or(bytes);
  if (json_bytes > bytes) {
    return InvalidField(kJsonLength, absl::StrCat("at most the ", bytes, " bytes of the body"),
                        absl::StrCat(json_bytes));
  }
  const int64_t received = memory_.amount();
  ASSIGN_OR_RETURN(InferBody read, ReadInferBody(body, json_bytes, [&](int64_t packed) {
                     return Charge(received + packed, HeldFor::kReceiving);
                   }));
  RETURN_IF_ERROR(CheckOutputForms(read.message, read.binary_outputs, read.binary_by_default));
  // Without binary tensors the body is not needed any more.
  const int64_t kept = json_bytes < bytes ? bytes : 0;
  body.reset();
  read.message.set_model_name(model_);
  read.message.set_model_version(version_);
  binary_outputs_ = std::move(read.binary_outputs);
  binary_by_default_ = read.binary_by_default;
  const int64_t tokenizing = TokenizingBytes(read.message, read.data, context_);
  if (tokenizing > 0) {
    RETURN_IF_ERROR(Charge(memory_.amount() + tokenizing, HeldFor::kReceiving));
  }
  return PrepareInferMessage(read.message, read.data, kept + read.packed_bytes, entry_.peer,
                             context_);
}

absl::Status InferCall::Submit(PreparedInfer prepared) {
  RETURN_IF_ERROR(Charge(prepared.compute.bytes, HeldFor::kRequest));
  to_answer_ = std::move(prepared.to_answer);
  entry_.account.Describe(prepared.compute.request);
  JobTerms terms = {entry_.peer, started_ + prepared.compute.timeout};
  terms.cancelled = cancelled_;
  terms.held.memory = std::move(memory_);
  return SubmitJob(
      context_, std::move(prepared.compute.request), std::move(terms),
      [this, self = shared_from_this()](ComputeJob::End result) { OnComputed(std::move(result)); });
}

void InferCall::OnComputed(ComputeJob::End result) {
  if (!result.response.ok()) {
    result.held.memory.Release();
    return Fail(result.response.status());
  }
  auto computed = std::make_shared<ComputeJob::End>(std::move(result));
  RunOnWorker([this, computed] { return Answer(std::move(*computed)); });
}

absl::Status InferCall::Answer(ComputeJob::End computed) {
  InferAnswer made = to_answer_(*std::move(computed.response));
  int64_t bytes = 0;
  for (const grpc::Slice& tensor : made.raw) bytes += static_cast<int64_t>(tensor.size());
  if (binary_outputs_.empty()) binary_outputs_.assign(made.raw.size(), binary_by_default_);
  HttpAnswer answer = MakeInferContent(std::move(made), binary_outputs_);
  computed.held.memory.Change(bytes, HeldFor::kAnswer);
  Finish(std::move(answer), std::move(computed.held.memory), computed.queued);
  return absl::OkStatus();
}

}  // namespace attendant::server
