#include <utility>

#include "client/cli/answer_output.h"
#include "client/cli/input_options.h"
#include "client/cli/memory_options.h"
#include "client/cli/shared_flags.h"
#include "client/commands/commands.h"

namespace attendant::client {
namespace {

class AttendCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  size_t TensorsAskedFor() const;

  AttendRequest request_;
  InputOptions input_;
  MemoryOptions memory_;
  AnswerOutput output_;
};

CommandTable AttendCommand::Table() {
  CommandTable table = {
      "Compute", "attend", "Compute the attention of one layer",
      "Prints the output of the stage given by --stage, and the server's timings.",
      "attendant-client attend --model worked-example \\\n"
      "  --values \"1,0,1,0;0,2,0,2;1,1,1,1\"\n"
      "attendant-client attend --model m --generate 1x5 --probabilities --top-keys 2"};
  table.Add("Model",
            {ModelFlag(request_.model),
             LayerFlag(request_.layer),
             {"--stage", "",
              "Stage to return: the context layer, its output projection, or the whole block with "
              "residual and norm",
              ChoiceKind<AttendStage>(request_.stage, {{"context", AttendStage::kContext},
                                                       {"projected", AttendStage::kProjected},
                                                       {"block", AttendStage::kBlock}})}});
  table.Add("Input", input_.TensorFlags());
  table.Add("Input", {input_.LayoutFlag()});
  table.Add("Memory", memory_.MemoryFlags(/*required=*/false));
  table.Add("Memory", {{"--memory-handle", "HANDLE",
                        "Attend to the registered memory with this handle, printed by put-memory",
                        TextKind(request_.memory_handle), "", "--memory"}});
  table.Add("Attention", {{"--probabilities", "", "Also return the attention probabilities",
                           SwitchKind(request_.return_attention_probabilities)},
                          {"--weighted-values", "", "Also return each value times its probability",
                           SwitchKind(request_.return_weighted_values)}});
  table.Add("Attention", AttentionFlags(request_));
  table.Add("Output", {{"--output-dtype", "", "Type of the returned tensors",
                        FloatTypeKind(request_.output_dtype, "the type of the input")},
                       output_.OutputFlag(),
                       RequestIdFlag(request_.request_id)});
  return table;
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

}  // namespace

std::unique_ptr<Command> MakeAttendCommand() { return std::make_unique<AttendCommand>(); }

}  // namespace attendant::client
