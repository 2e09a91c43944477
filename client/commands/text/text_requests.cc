#include "client/commands/text/text_requests.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/cli/answer_output.h"

namespace attendant::client {
namespace {

constexpr size_t kMostTexts = 1024;  // of one request, in the protocol
// Requests under way, so that the server has the next one while it computes one.
constexpr size_t kAhead = 3;
// Assumed of the model's own prompt, and of special tokens.
constexpr int64_t kPromptTokens = 256, kSpecialTokens = 8;

// The texts [first, last) of a request.
struct TextSpan {
  size_t first, last;
};

// Divides the texts so that no request has more tokens than the server takes: a token stands for a
// byte at least, so that none has to be tokenized before.
std::vector<TextSpan> Divide(const Texts& texts, const std::optional<std::string>& prompt,
                             const ModelInfo& model) {
  const int64_t most = std::max<int64_t>(model.limits().max_request_tokens(), 1);
  const int64_t extra =
      kSpecialTokens + (prompt ? static_cast<int64_t>(prompt->size()) : kPromptTokens);
  std::vector<TextSpan> spans;
  int64_t tokens = 0;
  for (size_t i = 0; i < texts.texts.size(); ++i) {
    int64_t own = extra + static_cast<int64_t>(texts.texts[i].size());
    if (!texts.pairs.empty()) own += static_cast<int64_t>(texts.pairs[i].size());
    if (spans.empty() || i - spans.back().first >= kMostTexts || tokens + own > most) {
      spans.push_back({i, i});
      tokens = 0;
    }
    spans.back().last = i + 1;
    tokens += own;
  }
  return spans;
}

template <typename Request>
Request WithTexts(const Request& request, const Texts& texts, const TextSpan& span) {
  const auto copy = [&](const std::vector<std::string>& from, std::vector<std::string>& to) {
    if (!from.empty()) to.assign(from.begin() + span.first, from.begin() + span.last);
  };
  Request part = request;
  copy(texts.texts, part.texts);
  copy(texts.pairs, part.text_pairs);
  return part;
}

// Returns the error of a request with these texts. An index in it counts all texts.
absl::Status OfTexts(const absl::Status& status, const TextSpan& span, size_t spans) {
  if (spans == 1) return status;
  for (const char* field : {"texts[", "text_pairs["}) {
    const std::vector<std::string> parts =
        absl::StrSplit(status.message(), absl::MaxSplits(']', 1));
    size_t index = 0;
    if (parts.size() == 2 && absl::StartsWith(parts[0], field) &&
        absl::SimpleAtoi(absl::StripPrefix(parts[0], field), &index)) {
      return absl::Status(status.code(), absl::StrCat(field, span.first + index, "]", parts[1]));
    }
  }
  return absl::Status(status.code(), absl::StrCat("texts ", span.first, "..", span.last - 1, ": ",
                                                  status.message()));
}

struct Pending {
  absl::Notification done;
  absl::StatusOr<EncodeResult> result;
};

std::shared_ptr<Pending> Send(const Client& client, EncodeRequest request,
                              const CallOptions& call) {
  auto pending = std::make_shared<Pending>();
  client.EncodeAsync(std::move(request), call, [pending](absl::StatusOr<EncodeResult> result) {
    pending->result = std::move(result);
    pending->done.Notify();
  });
  return pending;
}

absl::Status AppendRows(absl::StatusOr<EncodeResult> result, size_t count, TextVectors& all) {
  if (!result.ok()) return result.status();
  const bool is_first = all.rows.shape.empty();
  if (result->scores) {
    result->scores->shape.push_back(1);
    result->pooled = std::move(result->scores);
  }
  const std::optional<Tensor>& rows = result->pooled;
  if (!rows || rows->shape.size() != 2 || rows->shape[0] != static_cast<int64_t>(count) ||
      rows->dtype != DataType::kFloat32 || (!is_first && rows->shape[1] != all.rows.shape[1])) {
    return absl::InternalError("the server's response does not have a vector for each text");
  }
  if (is_first) {
    all = {*std::move(result->pooled), result->execution};
  } else {
    all.rows.shape[0] += rows->shape[0];
    all.rows.data += rows->data;
    Add(result->execution, all.execution);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelInfo> GetTextModel(const Client& client, const std::string& name,
                                       const CallOptions& call) {
  absl::StatusOr<ModelInfo> model = client.GetModel(name, call);
  if (!model.ok() || model->takes_texts()) return model;
  const std::string& why = model->why_no_texts();
  return absl::FailedPreconditionError(
      absl::StrCat("model \"", model->name(), "\" does not accept texts: ",
                   why.empty() ? "the server does not support texts; upgrade it" : why,
                   "; `attendant-client encode --token-ids` sends token ids"));
}

absl::StatusOr<TextVectors> EncodeTexts(const Client& client, EncodeRequest request,
                                        const Texts& texts, const ModelInfo& model,
                                        const CallOptions& call) {
  request.omit_hidden_states = true;
  request.return_pooled = !request.query_vectors;
  request.output_dtype = DataType::kFloat32;
  const std::vector<TextSpan> spans = Divide(texts, request.prompt, model);
  std::deque<std::shared_ptr<Pending>> under_way;
  TextVectors all;
  size_t sent = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    for (; sent < spans.size() && sent < i + kAhead; ++sent) {
      under_way.push_back(Send(client, WithTexts(request, texts, spans[sent]), call));
    }
    under_way.front()->done.WaitForNotification();
    const absl::Status status =
        AppendRows(std::move(under_way.front()->result), spans[i].last - spans[i].first, all);
    if (!status.ok()) return OfTexts(status, spans[i], spans.size());
    under_way.pop_front();
  }
  return all;
}

absl::Status AddQuery(const Client& client, const std::string& query, const CallOptions& call,
                      EncodeRequest& request) {
  EncodeRequest alone = request;
  alone.texts = {query};
  alone.task = "query";
  alone.omit_hidden_states = true;
  alone.return_token_vectors = true;
  alone.output_dtype = DataType::kFloat32;
  absl::StatusOr<EncodeResult> result = client.Encode(std::move(alone), call);
  if (!result.ok()) {
    return absl::Status(result.status().code(),
                        absl::StrCat("the query: ", result.status().message()));
  }
  if (!result->token_vectors) {
    return absl::InternalError("the server's response has no query token vectors");
  }
  request.query_vectors = *std::move(result->token_vectors);
  request.task = "document";
  return absl::OkStatus();
}

absl::StatusOr<TokenizeResult> TokenizeTexts(const Client& client, TokenizeRequest request,
                                             const Texts& texts, const ModelInfo& model,
                                             const CallOptions& call) {
  TokenizeResult all;
  const std::vector<TextSpan> spans = Divide(texts, request.prompt, model);
  for (const TextSpan& span : spans) {
    absl::StatusOr<TokenizeResult> part = client.Tokenize(WithTexts(request, texts, span), call);
    if (part.ok() && part->texts.size() != span.last - span.first) {
      part = absl::InternalError("the server's response does not have tokens for each text");
    }
    if (!part.ok()) return OfTexts(part.status(), span, spans.size());
    all.model_version = part->model_version;
    std::move(part->texts.begin(), part->texts.end(), std::back_inserter(all.texts));
  }
  return all;
}

}  // namespace attendant::client
