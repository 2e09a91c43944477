#include "client/commands/attend_command.h"

#include <map>
#include <utility>

#include "client/cli/attention_options.h"

namespace attendant::client {
namespace {

const std::map<std::string, AttendStage> kStages = {{"context", AttendStage::kContext},
                                                    {"projected", AttendStage::kProjected},
                                                    {"block", AttendStage::kBlock}};

}  // namespace

CLI::App* AttendCommand::AddTo(CLI::App& app) {
  CLI::App* attend = app.add_subcommand("attend", "Runs the attention of one layer");
  attend->add_option("--model", request_.model,
                     "Name of the model; default: the server's only one");
  attend->add_option("--layer", request_.layer, "Index of the layer")->capture_default_str();
  attend
      ->add_option("--stage", request_.stage,
                   "How far: context, projected, or block with residual and norm")
      ->transform(CLI::CheckedTransformer(kStages))
      ->type_name("context|projected|block")
      ->default_str("context");
  input_.AddTo(*attend);
  input_.AddLayoutTo(*attend);
  memory_.AddTo(*attend);
  attend
      ->add_option("--memory-handle", request_.memory_handle,
                   "Attend to this registered memory, as put-memory printed it")
      ->excludes("--memory");
  attend->add_flag("--probabilities", request_.return_attention_probabilities,
                   "Also answer the attention probabilities");
  attend->add_flag("--weighted-values", request_.return_weighted_values,
                   "Also answer each value times its probability");
  AddAttentionOptions(*attend, request_);
  AddFloatType(*attend, "--output-dtype", output_dtype_,
               "Type of the answer; default: that of the input");
  attend->add_option("--request-id", request_.request_id, "For the server's log");
  output_.AddTo(*attend);
  return attend;
}

size_t AttendCommand::TensorsAskedFor() const {
  const bool has_keys = request_.attention_form == AttentionForm::kTopKeys;
  return 1 + (request_.return_attention_probabilities ? (has_keys ? 2 : 1) : 0) +
         (request_.return_weighted_values ? 1 : 0);
}

ExitCode AttendCommand::Run(Session& session) {
  const absl::Status writable = output_.Check(TensorsAskedFor());
  if (!writable.ok()) return ReportBadUsage(session, writable);
  RequestInput input;
  if (const ExitCode read = ReadInput(session, request_.model, input_, input); read != kSucceeded) {
    return read;
  }
  absl::StatusOr<std::optional<Memory>> memory = memory_.Read(input.layout);
  if (!memory.ok()) return ReportBadUsage(session, memory.status());
  AttendRequest request = request_;
  request.memory = *std::move(memory);
  request.layout = input.layout;
  request.hidden_states = *std::move(input.hidden_states);
  request.attention_mask = std::move(input.attention_mask);
  request.attention_bias = std::move(input.attention_bias);
  request.lengths = std::move(input.lengths);
  request.output_dtype = FloatType(output_dtype_);

  absl::StatusOr<AttendResult> result = session.Connect().Attend(std::move(request), session.call);
  if (!result.ok()) return ReportServerError(session, result.status());
  std::vector<NamedTensor> tensors;
  tensors.push_back({"output", std::move(result->output)});
  const auto add = [&](const char* name, std::optional<Tensor>& tensor) {
    if (tensor) tensors.push_back({name, *std::move(tensor)});
  };
  add("attention_probabilities", result->attention_probabilities);
  add("attention_keys", result->attention_keys);
  add("weighted_values", result->weighted_values);
  return output_.Emit(session, tensors, result->execution);
}

}  // namespace attendant::client
