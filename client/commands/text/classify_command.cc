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

class ClassifyCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  // Returns the names of the classes.
  absl::StatusOr<std::vector<std::string>> Labels(const Client& client, const ModelInfo& model,
                                                  const CallOptions& call) const;
  void Print(Session& session, const Texts& texts, const std::vector<std::string>& labels,
             const TextVectors& outputs, v1::ScoreFunction function) const;

  EncodeRequest request_;
  TextInput input_;
  size_t top_n_ = 0;  // 0: unlimited
  bool raw_scores_ = false;
};

CommandTable ClassifyCommand::Table() {
  CommandTable table = {
      "Texts", "classify", "Score the classes of texts",
      "Prints the classes of each text with their scores, best first, for models with a "
      "classification head.",
      "attendant-client classify \"what a lovely day\" \"my train is late\"\n"
      "attendant-client classify --pairs --file pairs.tsv --json"};
  table.Add("Input", input_.TextFlags("Text to classify"));
  table.Add("Input", {input_.PairsFlag()});
  table.Add("Input", input_.PromptFlags());
  table.Add("Input", {input_.TruncateFlag()});
  table.Add("Model", {ModelFlag(request_.model)});
  table.Add("Output", {{"--top-n", "N", "Print only the best N classes of each text",
                        IntegerKind<size_t>(top_n_, 1)},
                       {"--raw-scores", "",
                        "Print the raw outputs of the model's head, without softmax or sigmoid",
                        SwitchKind(raw_scores_)},
                       RequestIdFlag(request_.request_id)});
  return table;
}

ExitCode ClassifyCommand::Run(Session& session) {
  const absl::StatusOr<Texts> texts = input_.Read();
  if (!texts.ok()) return ReportBadUsage(session, texts.status());
  const Client client = session.Connect();
  const absl::StatusOr<ModelInfo> model = GetTextModel(client, request_.model, session.call);
  if (!model.ok()) return ReportServerError(session, model.status());
  if (model->classes() == 0) {
    return ReportServerError(
        session, absl::FailedPreconditionError(absl::StrCat(
                     "model \"", model->name(),
                     "\" does not classify texts: its checkpoint has no classification head")));
  }
  const auto labels = Labels(client, *model, session.call);
  if (!labels.ok()) return ReportServerError(session, labels.status());
  EncodeRequest request = request_;
  input_.SetOptions(*model, request);
  request.pooling = Pooling::kClassifier;
  const absl::StatusOr<TextVectors> outputs =
      EncodeTexts(client, std::move(request), *texts, *model, session.call);
  if (!outputs.ok()) return ReportServerError(session, outputs.status());
  Print(session, *texts, *labels, *outputs, raw_scores_ ? v1::SCORES_PLAIN : model->class_scores());
  return kSucceeded;
}

absl::StatusOr<std::vector<std::string>> ClassifyCommand::Labels(const Client& client,
                                                                 const ModelInfo& model,
                                                                 const CallOptions& call) const {
  const absl::StatusOr<TokenizerInfo> tokenizer = client.GetTokenizer(model.name(), call);
  std::vector<std::string> labels;
  if (tokenizer.ok()) {
    labels.assign(tokenizer->labels().begin(), tokenizer->labels().end());
  } else if (!absl::IsNotFound(tokenizer.status())) {  // its directory may have only vocab.txt
    return tokenizer.status();
  }
  for (auto i = static_cast<int64_t>(labels.size()); i < model.classes(); ++i) {
    labels.push_back(absl::StrCat("LABEL_", i));
  }
  return labels;
}

void ClassifyCommand::Print(Session& session, const Texts& texts,
                            const std::vector<std::string>& labels, const TextVectors& outputs,
                            v1::ScoreFunction function) const {
  size_t width = 0;
  for (const std::string& label : labels) width = std::max(width, label.size());
  std::vector<JsonValue> results;
  const std::vector<std::vector<double>> all = Scores(function, outputs.rows);
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<size_t> best = BestFirst(all[i]);
    if (top_n_ > 0) best.resize(std::min(best.size(), top_n_));
    std::vector<JsonValue> scores;
    if (!session.json) session.out << Shortened(texts.texts[i], 100) << "\n";
    for (const size_t index : best) {
      const std::string label =
          index < labels.size() ? labels[index] : absl::StrCat("LABEL_", index);
      if (session.json) {
        scores.push_back({{"label", label}, {"score", all[i][index]}});
      } else {
        session.out << absl::StrFormat("  %-*s  %.6f\n", static_cast<int>(width), label,
                                       all[i][index]);
      }
    }
    std::vector<std::pair<std::string, JsonValue>> result = {{"text", texts.texts[i]}};
    if (!texts.pairs.empty()) result.emplace_back("text_pair", texts.pairs[i]);
    result.emplace_back("scores", scores);
    results.push_back(JsonValue::Object(result));
  }
  if (!session.json) return;
  PrintJson(session, {{"results", results}, {"execution", ToJson(outputs.execution)}});
}

}  // namespace

std::unique_ptr<Command> MakeClassifyCommand() { return std::make_unique<ClassifyCommand>(); }

}  // namespace attendant::client
