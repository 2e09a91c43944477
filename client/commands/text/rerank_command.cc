#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/shared_flags.h"
#include "client/cli/to_json.h"
#include "client/commands/text/scores.h"
#include "client/commands/text/text_commands.h"
#include "client/commands/text/text_input.h"
#include "client/commands/text/text_requests.h"

namespace attendant::client {
namespace {

class RerankCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  void Print(Session& session, const std::vector<double>& scores,
             const std::vector<std::string>& texts, const Execution& execution) const;

  EncodeRequest request_;
  TextInput input_;
  std::string query_;
  size_t top_n_ = 0;  // 0: all
  bool raw_scores_ = false;
};

CommandTable RerankCommand::Table() {
  CommandTable table = {
      "Texts", "rerank", "Order texts by how well they fit a query",
      "Prints the texts with their scores, best first. For models with one class, such as cross "
      "encoders.",
      "attendant-client rerank \"how do magnets work\" \"Magnets pull iron.\" \"It rains.\"\n"
      "attendant-client rerank \"how do magnets work\" --file texts.txt --top-n 3"};
  table.Add("Input", {{.name = "QUERY",
                       .placeholder = "",
                       .help = "The query",
                       .kind = TextKind(query_),
                       .required = true}});
  table.Add("Input", input_.TextFlags("A text that may fit the query"));
  table.Add("Input", {input_.TruncateFlag()});
  table.Add("Model", {ModelFlag(request_.model)});
  table.Add("Output",
            {{"--top-n", "N", "Print the best N texts alone", IntegerKind<size_t>(top_n_, 1)},
             {"--raw-scores", "",
              "Print the outputs of the model's head, without the function that makes scores of "
              "them",
              SwitchKind(raw_scores_)},
             RequestIdFlag(request_.request_id)});
  return table;
}

ExitCode RerankCommand::Run(Session& session) {
  absl::StatusOr<Texts> texts = input_.Read();
  if (!texts.ok()) return ReportBadUsage(session, texts.status());
  const Client client = session.Connect();
  const absl::StatusOr<ModelInfo> model = GetTextModel(client, request_.model, session.call);
  if (!model.ok()) return ReportServerError(session, model.status());
  if (model->classes() != 1) {
    return ReportServerError(
        session, absl::FailedPreconditionError(absl::StrCat(
                     "model \"", model->name(), "\" does not rank texts: expected 1 class; got ",
                     model->classes(), model->classes() > 1 ? "; use classify" : "")));
  }
  Texts pairs = {std::vector<std::string>(texts->texts.size(), query_), std::move(texts->texts)};
  EncodeRequest request = request_;
  input_.SetOptions(request);
  request.pooling = Pooling::kClassifier;
  const absl::StatusOr<TextVectors> outputs =
      EncodeTexts(client, std::move(request), pairs, *model, session.call);
  if (!outputs.ok()) return ReportServerError(session, outputs.status());
  std::vector<double> scores;
  for (const std::vector<double>& row :
       Scores(raw_scores_ ? v1::SCORES_PLAIN : model->rank_scores(), outputs->rows)) {
    scores.insert(scores.end(), row.begin(), row.end());
  }
  Print(session, scores, pairs.pairs, outputs->execution);
  return kSucceeded;
}

void RerankCommand::Print(Session& session, const std::vector<double>& scores,
                          const std::vector<std::string>& texts, const Execution& execution) const {
  std::vector<size_t> best = BestFirst(scores);
  if (top_n_ > 0) best.resize(std::min(best.size(), top_n_));
  if (session.json) {
    std::vector<JsonValue> results;
    for (const size_t index : best) {
      results.push_back({{"index", index}, {"score", scores[index]}, {"text", texts[index]}});
    }
    PrintJson(session, {{"results", results}, {"execution", ToJson(execution)}});
    return;
  }
  session.out << "     SCORE  INDEX  TEXT\n";
  for (const size_t index : best) {
    session.out << absl::StrFormat("%10.6f %6d  %s\n", scores[index], index,
                                   Shortened(texts[index], 100));
  }
}

}  // namespace

std::unique_ptr<Command> MakeRerankCommand() { return std::make_unique<RerankCommand>(); }

}  // namespace attendant::client
