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
  // Return the outputs of a head of one class, and the scores of late interaction.
  absl::StatusOr<TextVectors> ScorePairs(const Client& client, const ModelInfo& model,
                                         const std::vector<std::string>& texts,
                                         const CallOptions& call) const;
  absl::StatusOr<TextVectors> Interact(const Client& client, const ModelInfo& model,
                                       const std::vector<std::string>& texts,
                                       const CallOptions& call) const;
  void Print(Session& session, const std::vector<double>& scores,
             const std::vector<std::string>& texts, const Execution& execution) const;

  EncodeRequest request_;
  TextInput input_;
  std::string query_;
  size_t top_n_ = 0;  // 0: unlimited
  bool raw_scores_ = false;
};

CommandTable RerankCommand::Table() {
  CommandTable table = {
      "Texts", "rerank", "Rank texts by their relevance to a query",
      "Prints the texts with their scores, best first. For models with one class, such as "
      "cross-encoders, and models with token vectors, such as ColBERT.",
      "attendant-client rerank \"how do magnets work\" \"Magnets pull iron.\" \"It rains.\"\n"
      "attendant-client rerank \"how do magnets work\" --file texts.txt --top-n 3"};
  table.Add("Input", {{.name = "QUERY",
                       .placeholder = "",
                       .help = "The query",
                       .kind = TextKind(query_),
                       .required = true}});
  table.Add("Input", input_.TextFlags("Text to rank"));
  table.Add("Input", {input_.TruncateFlag()});
  table.Add("Model", {ModelFlag(request_.model)});
  table.Add(
      "Output",
      {{"--top-n", "N", "Print only the best N texts", IntegerKind<size_t>(top_n_, 1)},
       {"--raw-scores", "", "Print the raw outputs of the model's head", SwitchKind(raw_scores_)},
       RequestIdFlag(request_.request_id)});
  return table;
}

ExitCode RerankCommand::Run(Session& session) {
  absl::StatusOr<Texts> texts = input_.Read();
  if (!texts.ok()) return ReportBadUsage(session, texts.status());
  const Client client = session.Connect();
  const absl::StatusOr<ModelInfo> model = GetTextModel(client, request_.model, session.call);
  if (!model.ok()) return ReportServerError(session, model.status());
  const bool interacts = model->multi_vector() && model->classes() == 0;
  if (model->classes() != 1 && !interacts) {
    return ReportServerError(
        session, absl::FailedPreconditionError(absl::StrCat(
                     "model \"", model->name(),
                     "\" does not rank texts: expected 1 class or token vectors; got ",
                     model->classes(), " classes", model->classes() > 1 ? "; use classify" : "")));
  }
  const absl::StatusOr<TextVectors> outputs =
      interacts ? Interact(client, *model, texts->texts, session.call)
                : ScorePairs(client, *model, texts->texts, session.call);
  if (!outputs.ok()) return ReportServerError(session, outputs.status());
  const v1::ScoreFunction function =
      raw_scores_ || interacts ? v1::SCORES_PLAIN : model->rank_scores();
  std::vector<double> scores;
  for (const std::vector<double>& row : Scores(function, outputs->rows)) {
    scores.insert(scores.end(), row.begin(), row.end());
  }
  Print(session, scores, texts->texts, outputs->execution);
  return kSucceeded;
}

absl::StatusOr<TextVectors> RerankCommand::ScorePairs(const Client& client, const ModelInfo& model,
                                                      const std::vector<std::string>& texts,
                                                      const CallOptions& call) const {
  EncodeRequest request = request_;
  input_.SetOptions(model, request);
  request.pooling = Pooling::kClassifier;
  const Texts pairs = {std::vector<std::string>(texts.size(), query_), texts};
  return EncodeTexts(client, std::move(request), pairs, model, call);
}

absl::StatusOr<TextVectors> RerankCommand::Interact(const Client& client, const ModelInfo& model,
                                                    const std::vector<std::string>& texts,
                                                    const CallOptions& call) const {
  EncodeRequest request = request_;
  input_.SetOptions(model, request);
  const absl::Status status = AddQuery(client, query_, call, request);
  if (!status.ok()) return status;
  return EncodeTexts(client, std::move(request), {texts, {}}, model, call);
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
