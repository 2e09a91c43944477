#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/answer_output.h"
#include "client/cli/inline_values.h"
#include "client/cli/input_options.h"
#include "client/cli/shared_flags.h"
#include "client/commands/commands.h"
#include "client/commands/encode_in_parts.h"
#include "client/commands/text/text_input.h"

namespace attendant::client {
namespace {

class EncodeCommand : public Command {
 public:
  CommandTable Table() override;
  ExitCode Run(Session& session) override;

 private:
  Flags TextFlags();
  Flags ReturnFlags();
  Flags PoolingFlags();
  // Whether the answer has rows of several texts, which only their lengths tell apart.
  bool NeedsLengths(size_t texts) const;
  size_t TensorsAskedFor() const;
  absl::StatusOr<EncodeRequest> MakeRequest(RequestInput input) const;

  EncodeRequest request_;
  std::string layers_;
  std::optional<Truncation> truncation_;
  std::optional<Pooling> pooled_;
  int64_t chunk_ = 0;  // tokens per part; 0: sequences are sent whole
  InputOptions input_;
  AnswerOutput output_;
};

void MoveLayers(const std::string& name, std::vector<LayerTensor>& from,
                std::vector<NamedTensor>& to) {
  for (LayerTensor& item : from) {
    to.push_back({absl::StrCat(name, ".", item.layer), std::move(item.tensor)});
  }
}

Tensor Counts(const std::vector<int64_t>& counts) {
  return Int64Tensor({static_cast<int64_t>(counts.size())}, counts);
}

std::vector<NamedTensor> TensorsOf(EncodeResult result, bool with_lengths) {
  std::vector<NamedTensor> tensors;
  const std::pair<const char*, std::optional<Tensor>&> optional[] = {
      {"hidden_states", result.hidden_states},
      {"pooled", result.pooled},
      {"token_vectors", result.token_vectors}};
  for (const auto& [name, tensor] : optional) {
    if (tensor) tensors.push_back({name, *std::move(tensor)});
  }
  if (with_lengths) tensors.push_back({"lengths", Counts(result.lengths)});
  if (result.sparse) {
    tensors.push_back({"sparse_counts", Counts(result.sparse->counts)});
    tensors.push_back({"sparse_indices", std::move(result.sparse->indices)});
    tensors.push_back({"sparse_weights", std::move(result.sparse->weights)});
  }
  MoveLayers("intermediate", result.intermediate, tensors);
  MoveLayers("attention_probabilities", result.attention_probabilities, tensors);
  MoveLayers("attention_keys", result.attention_keys, tensors);
  return tensors;
}

CommandTable EncodeCommand::Table() {
  CommandTable table = {
      "Compute", "encode", "Run encoder layers on texts, token ids, hidden states or features",
      "Prints the hidden states of the last layer, and pooled vectors, other layers and attention "
      "probabilities on request.",
      "attendant-client encode --model minilm --token-ids 101,7592,2088,102 --pooled\n"
      "attendant-client encode --model minilm --text \"hello world\" --pooled\n"
      "attendant-client encode --model minilm --generate 2x5 --output out.npy"};
  table.Add("Model", {ModelFlag(request_.model), LayersFlag(layers_)});
  table.Add("Input", TextFlags());
  table.Add("Input", input_.TokenFlags());
  table.Add("Input", input_.TensorFlags());
  table.Add("Input", {input_.FeaturesFlag(),
                      input_.LayoutFlag(),
                      {"--chunk", "TOKENS",
                       "Send the sequence in chunks of this many tokens over EncodeStream; for "
                       "models that support it",
                       IntegerKind<int64_t>(chunk_, 1), "", "--text"}});
  table.Add("Returned tensors", ReturnFlags());
  table.Add("Returned tensors", PoolingFlags());
  table.Add("Attention", AttentionFlags(request_));
  table.Add("Output", {output_.OutputFlag(), RequestIdFlag(request_.request_id)});
  table.instead = "; use --text for texts";
  return table;
}

Flags EncodeCommand::TextFlags() {
  FlagKind prompt = {.read = [this](const std::string& text) {
    request_.prompt = text;
    return true;
  }};
  FlagKind truncate = ChoiceKind<Truncation>(
      truncation_,
      {{"right", Truncation::kRight}, {"left", Truncation::kLeft}, {"none", Truncation::kNone}});
  truncate.initial = "the side of the model's tokenizer for --text, else none";
  return {
      input_.TextFlag(),
      {"--prompt-name", "NAME", "Prepend the model's prompt with this name to each text",
       TextKind(request_.prompt_name, "the prompt for --task, or else the model's default prompt"),
       "--text"},
      {"--prompt", "TEXT", "Prepend this to each text; \"\": no prompt", std::move(prompt),
       "--text", "--prompt-name"},
      {"--truncate", "",
       "Truncate texts and token ids to the model's max_sequence_length (shown by "
       "`attendant-client models NAME`), on the right or on the left. With none, sequences up to "
       "the model's longest_sequence are computed in full, and longer ones are refused",
       std::move(truncate)},
  };
}

Flags EncodeCommand::ReturnFlags() {
  return {
      {"--no-hidden-states", "", "Omit the hidden states of the last layer",
       SwitchKind(request_.omit_hidden_states)},
      {"--intermediate", "LAYER,...", "Also return the output of these layers, such as 0,5",
       ListKind(request_.intermediate_layers)},
      {"--attention-layers", "LAYER,...", "Also return the attention probabilities of these layers",
       ListKind(request_.attention_layers)},
      {"--token-vectors", "",
       "Also return the output of the checkpoint's token head: class scores, or a vector, for each "
       "token",
       SwitchKind(request_.return_token_vectors)},
      {"--normalize-tokens", "", "Scale token vectors to length 1",
       SwitchKind(request_.normalize_token_vectors)},
      {"--task", "TASK",
       "Purpose of the sequences, query or document; some models return no vectors for certain "
       "document tokens",
       TextKind(request_.task, "")},
      {"--output-dtype", "", "Type of the returned tensors",
       FloatTypeKind(request_.output_dtype, "the type of the input, float32 for token ids")},
  };
}

Flags EncodeCommand::PoolingFlags() {
  FlagKind pooling =
      ChoiceKind<Pooling>(pooled_, {{"model", Pooling::kModel},
                                    {"first-token", Pooling::kFirstToken},
                                    {"mean", Pooling::kMean},
                                    {"max", Pooling::kMax},
                                    {"mean-sqrt-len", Pooling::kMeanSqrtLen},
                                    {"position-weighted-mean", Pooling::kPositionWeightedMean},
                                    {"last-token", Pooling::kLastToken},
                                    {"classifier", Pooling::kClassifier}});
  pooling.takes = FlagKind::Takes::kMaybeOne;
  pooling.implied = "model";
  return {
      {"--pooled", "POOLING",
       "Also return one vector per sequence; the default POOLING is model, as defined by the "
       "checkpoint",
       pooling},
      {"--normalize", "", "Scale pooled vectors to length 1",
       SwitchKind(request_.normalize_pooled)},
      {"--prompt-tokens", "COUNT,...",
       "Number of prompt tokens at the start of each sequence: one number for all sequences, or "
       "one for each. The pooled vector excludes them; with model, only if the model does so",
       ListKind(request_.prompt_tokens)},
      {"--sparse", "",
       "Also return a sparse vector over the vocabulary for each sequence (SPLADE): sparse_counts, "
       "sparse_indices and sparse_weights",
       SwitchKind(request_.return_sparse)},
  };
}

bool EncodeCommand::NeedsLengths(size_t texts) const {
  return texts > 1 && (!request_.omit_hidden_states || request_.return_token_vectors ||
                       !request_.intermediate_layers.empty());
}

size_t EncodeCommand::TensorsAskedFor() const {
  return (request_.omit_hidden_states ? 0 : 1) + (pooled_ ? 1 : 0) +
         (request_.return_token_vectors ? 1 : 0) + (request_.return_sparse ? 3 : 0) +
         (NeedsLengths(input_.texts()) ? 1 : 0) + request_.intermediate_layers.size() +
         request_.attention_layers.size() *
             (request_.attention_form == AttentionForm::kTopKeys ? 2 : 1);
}

absl::StatusOr<EncodeRequest> EncodeCommand::MakeRequest(RequestInput input) const {
  EncodeRequest request = request_;
  if (!layers_.empty()) {
    const absl::StatusOr<LayerSpan> span = ParseLayerSpan("--layers", layers_);
    if (!span.ok()) return span.status();
    request.layers = *span;
  }
  MoveInput(std::move(input), request);
  request.truncation = truncation_.value_or(Truncation::kNone);
  request.return_pooled = pooled_.has_value();
  request.pooling = pooled_.value_or(Pooling::kModel);
  return request;
}

ExitCode EncodeCommand::Run(Session& session) {
  const absl::Status writable = output_.Check(TensorsAskedFor());
  if (!writable.ok()) return ReportBadUsage(session, writable);
  RequestInput input;
  if (const ExitCode read = ReadInput(session, request_.model, input_, input); read != kSucceeded) {
    return read;
  }
  const Client client = session.Connect();
  if (!truncation_ && !input.texts.empty()) {
    const absl::StatusOr<ModelInfo> model = client.GetModel(request_.model, session.call);
    if (!model.ok()) return ReportServerError(session, model.status());
    truncation_ = SideOf(*model);
  }
  absl::StatusOr<EncodeRequest> request = MakeRequest(std::move(input));
  if (!request.ok()) return ReportBadUsage(session, request.status());
  if (const absl::Status status = chunk_ > 0 ? CheckInParts(*request) : absl::OkStatus();
      !status.ok()) {
    return ReportBadUsage(session, status);
  }
  absl::StatusOr<EncodeResult> result = chunk_ > 0
                                            ? EncodeInParts(client, *request, chunk_, session.call)
                                            : client.Encode(*std::move(request), session.call);
  if (!result.ok()) return ReportServerError(session, result.status());
  const Execution execution = result->execution;
  const std::vector<NamedTensor> tensors =
      TensorsOf(*std::move(result), NeedsLengths(input_.texts()));
  return output_.Emit(session, tensors, execution);
}

}  // namespace

std::unique_ptr<Command> MakeEncodeCommand() { return std::make_unique<EncodeCommand>(); }

}  // namespace attendant::client
