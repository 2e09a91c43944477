#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/inline_values.h"
#include "client/cli/input_options.h"
#include "client/cli/read_tensors.h"
#include "client/cli/shared_flags.h"
#include "client/commands/commands.h"
#include "client/commands/text/text_input.h"
#include "client/files/file_bytes.h"
#include "client/inspect/inspection.h"
#include "client/inspect/inspection_json.h"
#include "client/inspect/inspection_page.h"

namespace attendant::client {
namespace {

constexpr double kRankShare = 0.9;

void PrintLayer(std::ostream& out, const LayerInspection& layer) {
  double confidence = 0, symmetry = 0, rank = 0, rare = 0;
  bool has_rare = false, has_rank = false;
  std::vector<std::string> positional;
  for (const HeadInspection& inspected : layer.heads) {
    const HeadStatistics& head = inspected.statistics;
    confidence += head.confidence;
    symmetry += head.symmetry;
    has_rare = has_rare || head.rare_share;
    rare += head.rare_share.value_or(0);
    has_rank = has_rank || !head.cumulative_singular_values.empty();
    rank += static_cast<double>(RankOfShare(head.cumulative_singular_values, kRankShare));
    if (head.positional()) {
      positional.push_back(absl::StrCat(inspected.number, head.neighbour < 0 ? "<" : ">"));
    }
  }
  const auto heads = std::max<double>(1, static_cast<double>(layer.heads.size()));
  out << absl::StrFormat("%7d  %16.4g  %10.3f  %8.3f  %9s  %8s  %s\n", layer.layer,
                         layer.token_uniformity, confidence / heads, symmetry / heads,
                         has_rank ? absl::StrFormat("%.1f", rank / heads) : "-",
                         has_rare ? absl::StrFormat("%.3f", rare / heads) : "-",
                         positional.empty() ? "none" : absl::StrJoin(positional, " "));
}

void PrintSequences(std::ostream& out, const Inspection& inspection) {
  for (size_t i = 0; i < inspection.sequences.size(); ++i) {
    const SequenceInspection& sequence = inspection.sequences[i];
    out << absl::StrFormat("%s, sequence %d: %d tokens\n", inspection.model.name(), i,
                           sequence.positions.size());
    out << "  LAYER  TOKEN UNIFORMITY  CONFIDENCE  SYMMETRY  RANK 90 %  RARE IDS  POSITIONAL "
           "HEADS\n";
    for (const LayerInspection& layer : sequence.layers) PrintLayer(out, layer);
  }
}

class InspectCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  absl::StatusOr<LayerSpan> ChooseLayers(const ModelInfo& model) const;
  // Replaces the texts of a request by the ids of their tokens, and returns how the vocabulary
  // writes these: nothing without texts.
  static absl::StatusOr<std::vector<std::vector<std::string>>> TokenizeTexts(
      const Session& session, const ModelInfo& model, EncodeRequest& request);
  absl::Status NameTokens(Inspector& inspector) const;
  // Sends `request` for as many layers at a time as fit into one answer, until it has all of them.
  absl::Status AskForLayers(const Session& session, const LayerSpan& layers,
                            const EncodeRequest& request, const ModelInfo& model,
                            Inspector& inspector) const;
  ExitCode Emit(Session& session, const Inspection& inspection) const;

  EncodeRequest request_;  // only its model and gates are set
  std::string layers_;
  std::string html_;
  std::string tokens_;
  std::string tokens_file_;
  int64_t cells_ = 128;
  InputOptions input_;
};

CommandTable InspectCommand::Table() {
  CommandTable table = {
      "Look inside", "inspect", "Show statistics and maps of every attention head for an input",
      "Prints a table of confidence, symmetry, ranks and positional heads; with token ids, also "
      "the share of queries that attend most to the least frequent ids of all sequences.",
      "attendant-client inspect --model minilm --text \"hello world\" --html a.html\n"
      "attendant-client inspect --model minilm --token-ids 101,7592,2088,102 \\\n"
      "  --tokens \"[CLS] hello world [SEP]\" --html attention.html"};
  table.Add("Model", {ModelFlag(request_.model), LayersFlag(layers_)});
  table.Add("Input", {input_.TextFlag()});
  table.Add("Input", input_.TokenFlags());
  table.Add("Input", input_.TensorFlags());
  table.Add("Input",
            {input_.FeaturesFlag(),
             {"--tokens", "TEXTS",
              "Token labels, separated by spaces, one line per sequence; --text provides its own",
              TextKind(tokens_), "", "--text"},
             {"--tokens-file", "FILE", "Like --tokens, from a file", TextKind(tokens_file_), "",
              "--tokens --text"}});
  table.Add("Attention",
            {HeadGatesFlag(request_),
             {"--cells", "COUNT",
              "Maximum side length of an attention map; for more tokens, a cell is the probability "
              "from a group of queries to a group of keys, averaged over the queries",
              IntegerKind<int64_t>(cells_, 8, 1024)}});
  table.Add("Output", {HtmlFlag(html_)});
  return table;
}

ExitCode InspectCommand::Run(Session& session) {
  const absl::StatusOr<ModelInfo> model = session.Connect().GetModel(request_.model, session.call);
  if (!model.ok()) return ReportServerError(session, model.status());
  const absl::StatusOr<LayerSpan> layers = ChooseLayers(*model);
  if (!layers.ok()) return ReportBadUsage(session, layers.status());
  absl::StatusOr<RequestInput> input = input_.Read(input_.WidthOf(*model));
  if (!input.ok()) return ReportBadUsage(session, input.status());
  if (!session.json) input_.Show(session.out, *input);
  EncodeRequest request = request_;
  request.model = model->name();
  MoveInput(*std::move(input), request);
  const auto words = TokenizeTexts(session, *model, request);
  if (!words.ok()) return ReportServerError(session, words.status());
  absl::StatusOr<Inspector> inspector = Inspector::Create(request, *model, cells_);
  if (!inspector.ok()) return ReportBadUsage(session, inspector.status());
  const absl::Status named =
      words->empty() ? NameTokens(*inspector) : inspector->NameTokens(*words);
  if (!named.ok()) return ReportBadUsage(session, named);
  const absl::Status answered = AskForLayers(session, *layers, request, *model, *inspector);
  if (!answered.ok()) return ReportServerError(session, answered);
  return Emit(session, inspector->inspection());
}

absl::StatusOr<LayerSpan> InspectCommand::ChooseLayers(const ModelInfo& model) const {
  if (layers_.empty()) return LayerSpan{0, static_cast<uint32_t>(model.layers())};
  return ParseLayerSpan("--layers", layers_);
}

absl::StatusOr<std::vector<std::vector<std::string>>> InspectCommand::TokenizeTexts(
    const Session& session, const ModelInfo& model, EncodeRequest& request) {
  std::vector<std::vector<std::string>> words;
  if (request.texts.empty()) return words;
  TokenizeRequest texts;
  texts.model = request.model;
  texts.texts = std::exchange(request.texts, {});
  texts.truncation = SideOf(model);
  absl::StatusOr<TokenizeResult> tokens =
      session.Connect().Tokenize(std::move(texts), session.call);
  if (!tokens.ok()) return tokens.status();
  std::vector<int64_t> ids, types;
  for (TextTokens& text : tokens->texts) {
    ids.insert(ids.end(), text.ids.begin(), text.ids.end());
    types.insert(types.end(), text.token_type_ids.begin(), text.token_type_ids.end());
    request.lengths.push_back(static_cast<int64_t>(text.ids.size()));
    words.push_back(std::move(text.tokens));
  }
  const auto count = static_cast<int64_t>(ids.size());
  request.token_ids = Int64Tensor({count}, ids);
  const bool has_types =
      std::any_of(types.begin(), types.end(), [](int64_t type) { return type > 0; });
  if (has_types) request.token_type_ids = Int64Tensor({count}, types);
  return words;
}

absl::Status InspectCommand::NameTokens(Inspector& inspector) const {
  std::string text = tokens_;
  if (!tokens_file_.empty()) {
    absl::StatusOr<InputFile> file = InputFile::Open(tokens_file_);
    if (!file.ok()) return Named("--tokens-file", file.status());
    absl::StatusOr<std::string> read = file->Read(0, file->size());
    if (!read.ok()) return Named("--tokens-file", read.status());
    text = *std::move(read);
  } else if (text.empty()) {
    return absl::OkStatus();
  }
  absl::string_view lines = text;
  absl::ConsumeSuffix(&lines, "\n");
  std::vector<std::vector<std::string>> texts;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    texts.push_back(absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty()));
  }
  return Named(tokens_.empty() ? "--tokens-file" : "--tokens", inspector.NameTokens(texts));
}

absl::Status InspectCommand::AskForLayers(const Session& session, const LayerSpan& layers,
                                          const EncodeRequest& request, const ModelInfo& model,
                                          Inspector& inspector) const {
  const auto step =
      static_cast<uint32_t>(inspector.LayersThatFit(model.limits().max_answer_bytes()));
  for (uint32_t done = 0; done < layers.count; done += step) {
    const uint32_t end = done + std::min(step, layers.count - done);
    EncodeRequest part = request;
    part.layers = LayerSpan{layers.first, end};
    const size_t gates = static_cast<size_t>(end * model.layer().heads());
    if (request.head_gates.size() == static_cast<size_t>(layers.count * model.layer().heads())) {
      part.head_gates.resize(gates);
    }
    part.omit_hidden_states = true;
    part.output_dtype = DataType::kFloat32;
    for (uint32_t i = done; i < end; ++i) {
      part.intermediate_layers.push_back(layers.first + i);
      part.attention_layers.push_back(layers.first + i);
    }
    const absl::StatusOr<EncodeResult> result =
        session.Connect().Encode(std::move(part), session.call);
    if (!result.ok()) return result.status();
    if (result->attention_probabilities.size() != end - done) {
      return absl::InternalError("the server's response lacks attention probabilities");
    }
    if (absl::Status status = inspector.Add(*result); !status.ok()) return status;
  }
  return absl::OkStatus();
}

ExitCode InspectCommand::Emit(Session& session, const Inspection& inspection) const {
  if (!html_.empty()) {
    const absl::Status written = WriteFile(html_, ToHtml(inspection), "");
    if (!written.ok()) return ReportBadUsage(session, written);
  }
  if (session.json) {
    // On one line, because indented maps would be mostly spaces.
    session.out << ToJson(inspection, MapFormat::kValues).ToLine() << "\n";
  } else {
    PrintSequences(session.out, inspection);
    if (!html_.empty()) session.out << "page -> " << html_ << "\n";
  }
  return kSucceeded;
}

}  // namespace

std::unique_ptr<Command> MakeInspectCommand() { return std::make_unique<InspectCommand>(); }

}  // namespace attendant::client
