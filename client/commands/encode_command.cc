#include "client/commands/encode_command.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/attention_options.h"
#include "client/cli/inline_values.h"
#include "client/commands/encode_in_parts.h"

namespace attendant::client {
namespace {

const std::map<std::string, Pooling> kPoolings = {
    {"model", Pooling::kModel},
    {"first-token", Pooling::kFirstToken},
    {"mean", Pooling::kMean},
    {"max", Pooling::kMax},
    {"mean-sqrt-len", Pooling::kMeanSqrtLen},
    {"position-weighted-mean", Pooling::kPositionWeightedMean},
    {"last-token", Pooling::kLastToken},
    {"classifier", Pooling::kClassifier}};

const std::map<std::string, Truncation> kTruncations = {
    {"", Truncation::kNone}, {"right", Truncation::kRight}, {"left", Truncation::kLeft}};

void MoveLayers(const std::string& name, std::vector<LayerTensor>& from,
                std::vector<NamedTensor>& to) {
  for (LayerTensor& item : from) {
    to.push_back({absl::StrCat(name, ".", item.layer), std::move(item.tensor)});
  }
}

}  // namespace

CLI::App* EncodeCommand::AddTo(CLI::App& app) {
  CLI::App* encode =
      app.add_subcommand("encode", "Runs encoder layers, from hidden states or token ids");
  encode->add_option("--model", request_.model,
                     "Name of the model; default: the server's only one");
  encode->add_option("--layers", layers_, "Which layers; default: all")->type_name("FIRST:COUNT");
  input_.AddTo(*encode);
  input_.AddTokensTo(*encode);
  input_.AddLayoutTo(*encode);
  input_.AddFeaturesTo(*encode);
  encode
      ->add_option("--truncate", truncate_,
                   "Which side of token ids is cut that are longer than the model's positions "
                   "reach; default: they are refused")
      ->check(CLI::IsMember({"right", "left"}))
      ->type_name("right|left");
  encode->add_flag("--no-hidden-states", request_.omit_hidden_states,
                   "Leave the last layer's hidden states out of the answer");
  encode
      ->add_option("--intermediate", request_.intermediate_layers,
                   "Also answer the output of these layers: 0,5")
      ->delimiter(',')
      ->type_name("LAYER,…");
  encode
      ->add_option("--attention-layers", request_.attention_layers,
                   "Also answer the attention probabilities of these layers")
      ->delimiter(',')
      ->type_name("LAYER,…");
  AddAttentionOptions(*encode, request_);
  std::vector<std::string> poolings;
  for (const auto& [name, pooling] : kPoolings) poolings.push_back(name);
  encode
      ->add_option("--pooled", pooled_,
                   "Also answer one vector per sequence; without a POOLING as the checkpoint says")
      ->expected(0, 1)
      ->default_str("model")
      ->check(CLI::IsMember(poolings))
      ->type_name("POOLING");
  encode->add_flag("--normalize", request_.normalize_pooled, "Scale pooled vectors to length 1");
  encode->add_flag("--token-vectors", request_.return_token_vectors,
                   "Also answer what the checkpoint's head makes of each token: scores of classes, "
                   "or its vector");
  encode->add_flag("--normalize-tokens", request_.normalize_token_vectors,
                   "Scale the vectors of tokens to length 1");
  encode->add_flag("--sparse", request_.return_sparse,
                   "Also answer a sparse vector over the vocabulary for each sequence (SPLADE): "
                   "sparse_counts, sparse_indices and sparse_weights");
  AddFloatType(*encode, "--output-dtype", output_dtype_,
               "Type of the answer; default: that of the input");
  encode->add_option("--request-id", request_.request_id, "For the server's log");
  encode
      ->add_option(
          "--chunk", chunk_,
          "Send the one sequence in parts of this many tokens, over EncodeStream; for models "
          "that take sequences in parts")
      ->check(CLI::PositiveNumber)
      ->type_name("TOKENS");
  output_.AddTo(*encode);
  return encode;
}

size_t EncodeCommand::TensorsAskedFor() const {
  return (request_.omit_hidden_states ? 0 : 1) + (pooled_.empty() ? 0 : 1) +
         (request_.return_token_vectors ? 1 : 0) + (request_.return_sparse ? 3 : 0) +
         request_.intermediate_layers.size() +
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
  request.return_pooled = !pooled_.empty();
  if (request.return_pooled) request.pooling = kPoolings.at(pooled_);
  request.truncation = kTruncations.at(truncate_);
  request.output_dtype = FloatType(output_dtype_);
  return request;
}

ExitCode EncodeCommand::Run(Session& session) {
  const absl::Status writable = output_.Check(TensorsAskedFor());
  if (!writable.ok()) return ReportBadUsage(session, writable);
  RequestInput input;
  if (const ExitCode read = ReadInput(session, request_.model, input_, input); read != kSucceeded) {
    return read;
  }
  absl::StatusOr<EncodeRequest> request = MakeRequest(std::move(input));
  if (!request.ok()) return ReportBadUsage(session, request.status());
  if (const absl::Status status = chunk_ > 0 ? CheckInParts(*request) : absl::OkStatus();
      !status.ok()) {
    return ReportBadUsage(session, status);
  }
  const Client client = session.Connect();
  absl::StatusOr<EncodeResult> result = chunk_ > 0
                                            ? EncodeInParts(client, *request, chunk_, session.call)
                                            : client.Encode(*std::move(request), session.call);
  if (!result.ok()) return ReportServerError(session, result.status());
  std::vector<NamedTensor> tensors;
  if (result->hidden_states) {
    tensors.push_back({"hidden_states", *std::move(result->hidden_states)});
  }
  if (result->pooled) tensors.push_back({"pooled", *std::move(result->pooled)});
  if (result->token_vectors) {
    tensors.push_back({"token_vectors", *std::move(result->token_vectors)});
  }
  if (result->sparse) {
    const std::vector<int64_t>& counts = result->sparse->counts;
    tensors.push_back(
        {"sparse_counts", Int64Tensor({static_cast<int64_t>(counts.size())}, counts)});
    tensors.push_back({"sparse_indices", std::move(result->sparse->indices)});
    tensors.push_back({"sparse_weights", std::move(result->sparse->weights)});
  }
  MoveLayers("intermediate", result->intermediate, tensors);
  MoveLayers("attention_probabilities", result->attention_probabilities, tensors);
  MoveLayers("attention_keys", result->attention_keys, tensors);
  return output_.Emit(session, tensors, result->execution);
}

}  // namespace attendant::client
