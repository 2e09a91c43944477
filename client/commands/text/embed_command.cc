#include <utility>

#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/answer_output.h"
#include "client/cli/shared_flags.h"
#include "client/commands/text/text_commands.h"
#include "client/commands/text/text_input.h"
#include "client/commands/text/text_requests.h"

namespace attendant::client {
namespace {

class EmbedCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  EncodeRequest request_;
  TextInput input_;
  AnswerOutput output_;
};

CommandTable EmbedCommand::Table() {
  CommandTable table = {
      "Texts", "embed", "Compute the vectors of texts",
      "Prints one vector per text, pooled as in sentence-transformers.",
      "attendant-client embed \"hello world\" \"good morning\"\n"
      "attendant-client embed --model minilm --file texts.txt --output vectors.npy\n"
      "echo \"how do magnets work\" | attendant-client embed --prompt-name query --json"};
  table.Add("Input", input_.TextFlags("Text to embed"));
  table.Add("Input", input_.PromptFlags());
  table.Add("Input", {input_.TruncateFlag()});
  table.Add("Model", {ModelFlag(request_.model)});
  table.Add("Output", {{"--normalize", "", "Scale the vectors to length 1",
                        SwitchKind(request_.normalize_pooled)},
                       output_.OutputFlag(),
                       RequestIdFlag(request_.request_id)});
  return table;
}

ExitCode EmbedCommand::Run(Session& session) {
  const absl::Status writable = output_.Check(1);
  if (!writable.ok()) return ReportBadUsage(session, writable);
  const absl::StatusOr<Texts> texts = input_.Read();
  if (!texts.ok()) return ReportBadUsage(session, texts.status());
  const Client client = session.Connect();
  const absl::StatusOr<ModelInfo> model = GetTextModel(client, request_.model, session.call);
  if (!model.ok()) return ReportServerError(session, model.status());
  EncodeRequest request = request_;
  input_.SetOptions(*model, request);
  request.pooling = static_cast<Pooling>(model->text_pooling());
  absl::StatusOr<TextVectors> vectors =
      EncodeTexts(client, std::move(request), *texts, *model, session.call);
  if (!vectors.ok()) return ReportServerError(session, vectors.status());
  return output_.Emit(session, {{"embeddings", std::move(vectors->rows)}}, vectors->execution);
}

}  // namespace

std::unique_ptr<Command> MakeEmbedCommand() { return std::make_unique<EmbedCommand>(); }

}  // namespace attendant::client
