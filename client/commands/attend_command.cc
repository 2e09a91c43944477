#include "client/commands/attend_command.h"

#include <map>
#include <utility>

namespace attendant::client {
namespace {

const std::map<std::string, AttendStage> kStages = {{"context", AttendStage::kContext},
                                                    {"projected", AttendStage::kProjected},
                                                    {"block", AttendStage::kBlock}};

}  // namespace

CLI::App* AttendCommand::AddTo(CLI::App& app) {
  CLI::App* attend = app.add_subcommand("attend", "Runs the attention of one layer");
  attend->add_option("--model", request_.model, "Default: the server's only one");
  attend->add_option("--layer", request_.layer, "Index of the layer")->capture_default_str();
  attend
      ->add_option("--stage", request_.stage,
                   "How far: context, projected, or block with residual and norm")
      ->transform(CLI::CheckedTransformer(kStages))
      ->type_name("context|projected|block")
      ->default_str("context");
  input_.AddTo(*attend);
  memory_.AddTo(*attend);
  attend
      ->add_option("--memory-handle", request_.memory_handle,
                   "Attend to this registered memory, as put-memory printed it")
      ->excludes("--memory");
  attend->add_flag("--probabilities", request_.return_attention_probabilities,
                   "Also answer the attention probabilities");
  AddFloatType(*attend, "--output-dtype", output_dtype_,
               "Of the answer; default: that of the input");
  attend->add_option("--request-id", request_.request_id, "For the server's log");
  output_.AddTo(*attend);
  return attend;
}

ExitCode AttendCommand::Run(Session& session) {
  const absl::Status writable = output_.Check(request_.return_attention_probabilities ? 2 : 1);
  if (!writable.ok()) return ReportBadUsage(session, writable);
  RequestInput input;
  if (const ExitCode read = ReadInput(session, request_.model, input_, input); read != kSucceeded) {
    return read;
  }
  absl::StatusOr<std::optional<Memory>> memory = memory_.Read();
  if (!memory.ok()) return ReportBadUsage(session, memory.status());
  AttendRequest request = request_;
  request.memory = *std::move(memory);
  request.hidden_states = *std::move(input.hidden_states);
  request.attention_mask = std::move(input.attention_mask);
  request.attention_bias = std::move(input.attention_bias);
  request.lengths = std::move(input.lengths);
  request.output_dtype = FloatType(output_dtype_);

  absl::StatusOr<AttendResult> result = session.Connect().Attend(std::move(request), session.call);
  if (!result.ok()) return ReportServerError(session, result.status());
  std::vector<NamedTensor> tensors;
  tensors.push_back({"output", std::move(result->output)});
  if (result->attention_probabilities) {
    tensors.push_back({"attention_probabilities", *std::move(result->attention_probabilities)});
  }
  return output_.Emit(session, tensors, result->execution);
}

}  // namespace attendant::client
